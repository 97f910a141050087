"""Make the gallery of the README: one picture of the plans of several scenarios, as their pages draw them.

    python docs/_ext/gallery.py demos/pictures/gallery.jpg [PLANS]

Plans that PLANS holds already (NAME.plan.yaml, NAME as below) are taken from there. (`make gallery` calls this.)
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

import mcplan as mc
from mcplan.view.moving.film_maker import save_picture
from mcplan.view.plan_replay import stances_page

SHOWN = (
    ("ladder", "hrp2", 0.55), ("handstand", "hrp2", 1.0), ("crawl", "hrp2", 0.5), ("rubble", "hrp2", 0.45),
    ("stairs_rail", "hrp2", 0.7), ("push", "hrp2", 0.5), ("kneel", "hrp2", 0.5), ("stairs", "g1", 0.5),
)  # fmt: skip
"""Scenario, robot, and which stance: a share of the plan."""

SIZE, COLUMNS, GAP = (440, 360), 4, 4
"""Pixels of a picture, pictures in a row, pixels between them."""


def pictured(scenario: str, robot: str, share: float, plans: Path | None, directory: Path) -> Image.Image:
    """Return the picture of a stance of a plan."""
    known = None if plans is None else plans / f"{scenario}_{robot}.plan.yaml"
    if known is not None and known.is_file():
        plan = mc.load_plan(known)
    else:
        plan = mc.plan(mc.load_scenario(scenario, {} if robot == "hrp2" else {"robot": robot}))
    path = directory / f"{scenario}_{robot}.png"
    save_picture(stances_page(plan), path, round(share * (len(plan.stances) - 1)), SIZE)
    with Image.open(path) as picture:
        return picture.convert("RGB")


def sheet(pictures: Sequence[Image.Image], columns: int) -> Image.Image:
    """Return one picture of several of one size, row by row."""
    (width, height), rows = pictures[0].size, -(-len(pictures) // columns)
    whole = Image.new("RGB", (columns * (width + GAP) - GAP, rows * (height + GAP) - GAP), "white")
    for k, picture in enumerate(pictures):
        whole.paste(picture, (k % columns * (width + GAP), k // columns * (height + GAP)))
    return whole


def main(arguments: Sequence[str]) -> int:
    """Make the gallery."""
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    plans = Path(arguments[1]) if len(arguments) > 1 else None
    with tempfile.TemporaryDirectory() as directory:
        pictures = [pictured(*shown, plans, Path(directory)) for shown in SHOWN]
    sheet(pictures, COLUMNS).save(arguments[0], quality=88, optimize=True)
    print(arguments[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
