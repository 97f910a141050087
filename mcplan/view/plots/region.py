"""A support region seen from above."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from mcplan.statics.support_region import SupportRegion


def plot_region(region: "SupportRegion", axes: Any = None, **style: Any) -> Any:
    """Draw a region into matplotlib axes (new ones by default) and return them; ``style`` goes to its outline.

    What is said of a region without bounds, which is cut far away, ends in ``(cut)``: its label, or the title.
    """
    cut = "" if region.bounded else " (cut)"
    if axes is None:
        from matplotlib.figure import Figure

        axes = Figure(figsize=(4.5, 4.0), layout="constrained").add_subplot()
        axes.set(xlabel="x (m)", ylabel="y (m)", title=f"where the centre of mass may be{cut}", aspect="equal")
        axes.grid(alpha=0.3)
    corners = region.vertices
    if len(corners):
        closed = np.vstack([corners, corners[:1]])
        axes.fill(closed[:, 0], closed[:, 1], alpha=0.15)
        named = {"label": f"{style['label']}{cut}"} if "label" in style else {}
        axes.plot(closed[:, 0], closed[:, 1], **({"lw": 1.5} | style | named))
    return axes
