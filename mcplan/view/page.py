"""Offline HTML page of a drawing: meshcat's viewer, the scene, time line, panels, layers and legend."""

import base64
import html
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import meshcat
import numpy as np

from mcplan.certificate.report import Report
from mcplan.view import palette
from mcplan.view.arrow import METRES_PER_NEWTON
from mcplan.view.drawing import Drawing, item_name
from mcplan.view.palette import band_colours


def css_colour(rgba: Sequence[float]) -> str:
    """Return a colour (0..1) in CSS, with an opacity of at least 0.4."""
    red, green, blue, alpha = rgba
    return f"rgba({round(255 * red)}, {round(255 * green)}, {round(255 * blue)}, {max(alpha, 0.4):g})"


LAYERS = (
    ("forces", f"contact forces ({100 * 100 * METRES_PER_NEWTON:.0f} cm: 100 N)", palette.FORCE, True),
    ("cones", "friction cones", palette.CONE, True),
    ("com", "centre of mass", palette.COM, True),
    ("support", "support region", palette.SUPPORT, True),
    ("trails", "foot and hand paths", palette.TRAIL, True),
    ("stiles", "ladder stiles (not modelled)", palette.STILE, True),
)
"""Layers: first name of their node paths, label, colour, and whether they are visible at first."""

LINK_LAYERS = (
    ("frame ", "frames", "frames (x y z: red green blue)", None),
    ("collision", "collision", "collision bodies, where they differ", palette.COLLISION),
)
"""Layers below the links of the robot: prefix of the node names, key, label, colour."""

PATCH_COLOURS = (
    ("patch ", "patch in contact", palette.CONTACT),
    ("moved ", "patch that is moved there", palette.MOVED),
)
"""Colours of patches in the legend: prefix of the node names, label, colour."""


def layers(drawing: Drawing, shown: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the layers of a drawing: key, name, colour, paths of nodes, and initial visibility.

    Parameters
    ----------
    shown : keys of layers below the links that are visible at first.
    """
    items = []
    for key, name, colour, is_visible in LAYERS:
        if any(path.split("/")[0] == key for path in drawing.paths):
            items.append({"key": key, "name": name, "colour": css_colour(colour), "on": is_visible, "nodes": [key]})
    for prefix, key, name, rgba in LINK_LAYERS:
        nodes = sorted({"/".join(p.split("/")[:3]) for p in drawing.paths if _in_link(p, prefix)})
        if nodes:
            colour_text = None if rgba is None else css_colour(rgba)
            items.append({"key": key, "name": name, "colour": colour_text, "on": key in shown, "nodes": nodes})
    return items


def colour_keys(drawing: Drawing) -> list[list[str]]:
    """Return the legend of the patch colours that occur in the drawing."""
    return [
        [name, css_colour(colour)]
        for prefix, name, colour in PATCH_COLOURS
        if any(_in_link(p, prefix) for p in drawing.seen)
    ]


def arrows(drawing: Drawing) -> list[dict[str, str]]:
    """Return the name of each patch that has a force arrow, and the path of the arrow's node."""
    parts = [path.split("/") for path in drawing.paths]
    nodes = dict.fromkeys(part[1] for part in parts if part[0] == "forces" and len(part) > 2)
    return [{"name": item_name(node), "node": f"forces/{node}"} for node in nodes]


def _in_link(path: str, prefix: str) -> bool:
    """Whether a node path is below a link of the robot, at a node with this prefix."""
    parts = path.split("/")
    return len(parts) > 2 and parts[0] == "robot" and parts[2].startswith(prefix)


STYLES = ("theme.css", "page.css")
"""Style sheets of `web` in every page with a scene."""

SCRIPTS = (
    "element.js", "charts.js", "viewer.js", "stage.js", "clock.js", "timeline.js", "labels.js", "ghost.js", "card.js",
    "legend.js", "keys.js",
)  # fmt: skip
"""Scripts of `web` in every page with a scene, in order."""

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "media-src blob:; worker-src blob:; frame-src 'self'"
)
"""Content security policy: the page loads nothing from other addresses."""


@dataclass(frozen=True)
class Page:
    """A page to write or serve.

    Attributes
    ----------
    title : heading.
    drawing : the scene with its animation.
    bands : items of the time line: ``begin``, ``end``, ``name``, ``colour``, and optional ``facts``.
    duration : length of the motion on the time line, in its unit; 0 without a motion.
    seconds : if the time line counts stances, the playing time of each stance (s); otherwise empty.
    stances : whether the time line counts stances, with one band around each whole number, instead of seconds.
    tree : the panel of the search tree (`view.tree_panel`), or None.
    readings : charts below the time line (`view.readings`), or None.
    certificate : checks of the certificate (`certificate_data`), or None.
    ghost : postures of the target stances (`view.robot.ghost_data`), or None.
    plan : the executed stances: ``name``, ``margin``, and the time ``t`` or None.
    shown : keys of layers below the links that are visible at first (`layers`).
    """

    title: str
    drawing: Drawing
    bands: Sequence[dict[str, Any]]
    duration: float
    stances: bool = False
    tree: dict[str, Any] | None = field(default=None, repr=False)
    readings: dict[str, Any] | None = field(default=None, repr=False)
    certificate: dict[str, Any] | None = field(default=None, repr=False)
    ghost: dict[str, Any] | None = field(default=None, repr=False)
    plan: Sequence[dict[str, Any]] = ()
    shown: Sequence[str] = ()
    seconds: Sequence[float] = ()

    @property
    def length(self) -> float:
        """Playing time, s."""
        return self.seconds[-1] if len(self.seconds) else self.duration

    def at(self, second: float) -> float:
        """Return the position on the time line at a playing time (s)."""
        return float(np.interp(second, self.seconds, np.arange(len(self.seconds)))) if len(self.seconds) else second

    def text(self) -> str:
        """Return the page as HTML."""
        data = {
            "title": self.title,
            "duration": self.duration,
            "seconds": list(self.seconds),
            "stances": self.stances,
            "bands": list(self.bands),
            "camera": [point.tolist() for point in self.drawing.camera],
            "ground": self.drawing.ground,
            "layers": layers(self.drawing, self.shown),
            "keys": colour_keys(self.drawing),
            "forces": arrows(self.drawing),
            "newton": METRES_PER_NEWTON,
            "tree": self.tree,
            "readings": self.readings,
            "certificate": self.certificate,
            "ghost": self.ghost,
            "plan": list(self.plan),
            "commands": base64_commands(self.drawing),
            "tracks": self.drawing.tracks(),
        }
        scripts = [*SCRIPTS, "main.js", "pictures.js", *(["tree.js"] if self.tree is not None else [])]
        return fill_template("page.html", self.title, data, STYLES, scripts)


def base64_commands(drawing: Drawing) -> list[str]:
    """Return the commands of a drawing in base 64, for a page."""
    return [base64.b64encode(command).decode("ascii") for command in drawing.commands()]


def fill_template(
    template: str,
    title: str,
    data: dict[str, Any],
    styles: Sequence[str],
    scripts: Sequence[str],
    policy: str = POLICY,
    **parts: str,
) -> str:
    """Fill in a template of `web`, between the head and the foot common to all pages.

    Parameters
    ----------
    template : file name.
    title : title of the page.
    data : plain values that scripts access as ``data``.
    styles, scripts : file names, in order.
    policy : content security policy.
    parts : further markup by its name in the template; texts in it must be escaped.
    """
    pieces = (web_file("head.html") + web_file(template) + web_file("foot.html")).split("{{")
    # no text from a user's file may close the script element, or open another
    values = {
        "TITLE": html.escape(title),
        "POLICY": policy,
        "DATA": json.dumps(data).replace("<", "\\u003c"),
        "STYLE": "\n".join(web_file(name) for name in styles),
        "SCRIPT": "\n".join(web_file(name) for name in scripts),
        **parts,
    }
    if any(piece.startswith("VIEWER}}") for piece in pieces):
        viewer_js = (Path(meshcat.__file__).parent / "viewer" / "dist" / "main.min.js").read_text(encoding="utf-8")
        values["VIEWER"] = viewer_js.replace("</script", "<\\/script")
    return pieces[0] + "".join(values[name] + rest for name, rest in (piece.split("}}", 1) for piece in pieces[1:]))


def certificate_data(certificate: Report | None) -> dict[str, Any] | None:
    """Return a certificate as plain values for a page: failed checks first."""
    if certificate is None:
        return None
    rows = sorted((check.row() for check in certificate.checks), key=lambda row: row[0] != "FAIL")
    judged = [check for check in certificate.checks if check.bound]
    return {
        "success": certificate.success,
        "judged": len(judged),
        "broken": sum(not check.passed for check in certificate.checks),
        "rows": [list(row) for row in rows],
        "failures": certificate.failures,
    }


def band_items(bands: Sequence[tuple[float, float, str]]) -> list[dict[str, Any]]:
    """Return (begin, end, name) of phases as bands of a page, coloured by the first word of the name."""
    colours = band_colours([name for _, _, name in bands])
    return [{"begin": b, "end": e, "name": name, "colour": colours[name]} for b, e, name in bands]


def web_file(name: str) -> str:
    """Return the text of a file of `web`: a template, a style sheet or a script."""
    return resources.files("mcplan.view").joinpath("web", name).read_text(encoding="utf-8")
