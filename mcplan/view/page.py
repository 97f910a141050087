"""One offline HTML page around a drawing: meshcat's viewer, the scene, and a time line with the phases."""

import base64
import html
import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import meshcat

from mcplan.view.drawing import Drawing
from mcplan.view.phase_bands import band_colours


def page(drawing: Drawing, title: str, bands: Sequence[tuple[float, float, str]], duration: float) -> str:
    """Return the page as text.

    Parameters
    ----------
    drawing : the scene with its animation.
    title : heading of the page.
    bands : phases as (begin, end, name), s.
    duration : length of the motion, s.
    """
    viewer_js = (Path(meshcat.__file__).parent / "viewer" / "dist" / "main.min.js").read_text(encoding="utf-8")
    colours = band_colours([name for _, _, name in bands])
    data = {
        "title": title,
        "duration": duration,
        "bands": [{"begin": b, "end": e, "name": name, "colour": colours[name]} for b, e, name in bands],
        "camera": [point.tolist() for point in drawing.camera],
        "commands": [base64.b64encode(command).decode("ascii") for command in drawing.commands()],
    }
    template = resources.files("mcplan.view").joinpath("page.html").read_text(encoding="utf-8")
    # no text of the user's may end the script element, or open another
    filled = {
        "TITLE": html.escape(title),
        "VIEWER": viewer_js.replace("</script", "<\\/script"),
        "DATA": json.dumps(data).replace("<", "\\u003c"),
    }
    before, rest = template.split("/*VIEWER*/")
    middle, after = rest.split("/*DATA*/")
    return before.replace("TITLE", filled["TITLE"]) + filled["VIEWER"] + middle + filled["DATA"] + after
