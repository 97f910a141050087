"""Make the picture of a walk: the robot after the same times at ``slow``, at ``fast``, and there without a rest.

    python docs/_ext/paces.py demos/pictures/paces.jpg

(`make gallery` calls this.)
"""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from gallery import sheet
from PIL import Image

import mcplan as mc
from mcplan.view.moving.film_maker import save_picture
from mcplan.view.replay import run_page

WALKS = (
    {"control.pace": "slow"},
    {"control.pace": "fast"},
    {"control.pace": "fast", "control.walking": "dynamic"},
)
COLUMNS, SIZE = 6, (300, 300)
"""Pictures in a row; pixels of one."""


def main(arguments: Sequence[str]) -> int:
    """Make the picture."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    runs = [mc.simulate(mc.load_scenario("walk", settings), physics="mujoco") for settings in WALKS]
    times = np.linspace(0.0, min(float(run.t[-1] - run.t[0]) for run in runs), COLUMNS)
    pictures = []
    with tempfile.TemporaryDirectory() as directory:
        for run in runs:
            page = run_page(run)
            for t in times.tolist():
                path = Path(directory) / "picture.png"
                save_picture(page, path, t, SIZE)
                with Image.open(path) as picture:
                    pictures.append(picture.convert("RGB"))
    sheet(pictures, COLUMNS).save(arguments[0], quality=88, optimize=True)
    took = (f"{', '.join(walk.values())} {len(run) * run.dt:.1f} s" for walk, run in zip(WALKS, runs, strict=True))
    print(f"{arguments[0]}: {', '.join(took)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
