"""What a page can switch on and off, and what its colours mean."""

from collections.abc import Sequence
from typing import Any

from mcplan.view import palette
from mcplan.view.arrow import NEWTON
from mcplan.view.drawing import Drawing
from mcplan.view.node import thing_name


def css(rgba: Sequence[float]) -> str:
    """Return a colour (0..1) as a page writes it; what is nearly transparent is shown stronger."""
    red, green, blue, alpha = rgba
    return f"rgba({round(255 * red)}, {round(255 * green)}, {round(255 * blue)}, {max(alpha, 0.4):g})"


LAYERS = (
    ("forces", f"contact forces ({100 * 100 * NEWTON:.0f} cm: 100 N)", palette.FORCE, True),
    ("cones", "friction cones", palette.CONE, True),
    ("com", "centre of mass", palette.COM, True),
    ("support", "support region", palette.SUPPORT, True),
    ("trails", "ways of patches", palette.TRAIL, True),
    ("stiles", "stiles (only drawn)", palette.STILE, True),
)
"""Parts of a drawing by the first name of their paths, in words, with their colour, and whether they are shown."""

WITHIN = (
    ("frame ", "frames", "frames (x y z: red green blue)", None),
    ("collision", "collision", "collision bodies, where they differ", palette.COLLISION),
)
"""Parts of the robot's links, by how the name of their node begins."""

KEYS = (
    ("patch ", "patch in contact", palette.CONTACT),
    ("moved ", "patch that is moved there", palette.MOVED),
)


def layers(drawing: Drawing, shown: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Return the layers that a drawing has: key, name, colour, paths of nodes, and whether they are shown at first.

    Parameters
    ----------
    shown : keys of layers that are shown although they are usually not.
    """
    found = []
    for key, name, colour, on in LAYERS:
        if any(path.split("/")[0] == key for path in drawing.paths):
            found.append({"key": key, "name": name, "colour": css(colour), "on": on, "nodes": [key]})
    for begin, key, name, tint in WITHIN:
        nodes = sorted({"/".join(p.split("/")[:3]) for p in drawing.paths if _in_link(p, begin)})
        if nodes:
            colour_text = None if tint is None else css(tint)
            found.append({"key": key, "name": name, "colour": colour_text, "on": key in shown, "nodes": nodes})
    return found


def colour_keys(drawing: Drawing) -> list[list[str]]:
    """Return what the colours of patches mean, of those that are seen at some time."""
    return [[name, css(colour)] for begin, name, colour in KEYS if any(_in_link(p, begin) for p in drawing.seen)]


def arrows(drawing: Drawing) -> list[dict[str, str]]:
    """Return the patches that have a force arrow: the name of each, and the path of its arrow's node."""
    parts = [path.split("/") for path in drawing.paths]
    nodes = dict.fromkeys(part[1] for part in parts if part[0] == "forces" and len(part) > 2)
    return [{"name": thing_name(node), "node": f"forces/{node}"} for node in nodes]


def _in_link(path: str, begin: str) -> bool:
    parts = path.split("/")
    return len(parts) > 2 and parts[0] == "robot" and parts[2].startswith(begin)
