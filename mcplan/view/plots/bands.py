"""Time axes common to all plots of a run, with the phases as a stripe along the upper edge."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from mcplan.record.run import Run
from mcplan.util.text import escape_mathtext
from mcplan.view.palette import phase_bands, phase_colour

STRIPE_HEIGHT = 0.035
"""Height of the stripe of phases / height of the axes; below it phases only tint the background."""

TINT = 0.10
"""Opacity of the phase colours in the background."""


def time_axes(run: Run, labels: list[str], title: str, heights: list[float] | None = None) -> tuple[Figure, np.ndarray]:
    """Return a figure with one axes per label (the y labels), sharing time, phases as bands, their legend below."""
    heights = heights or [1.0] * len(labels)
    figure = Figure(figsize=(11, 1.2 + 2.1 * sum(heights)), layout="constrained")
    rows = figure.subplots(len(labels), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights})[:, 0]
    for axes, label in zip(rows, labels, strict=True):
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
        draw_bands(axes, run)
    rows[-1].set_xlabel("time [s]")
    rows[-1].set_xlim(0.0, max(float(run.t[-1] - run.t[0]), run.dt))
    figure.suptitle(escape_mathtext(f"{run.scenario.name}: {title}"))
    add_phase_legend(figure, run)
    return figure, rows


def add_phase_legend(figure: Figure, run: Run) -> None:
    """Put the legend of the kinds of phases below a figure."""
    kinds = dict.fromkeys(name.split(" ")[0] for _, _, name in phase_bands(run))
    figure.legend(
        handles=[Patch(color=phase_colour(kind), label=escape_mathtext(kind)) for kind in kinds],
        loc="outside lower center",
        ncols=min(len(kinds), 10),
        fontsize="small",
        title="phase",
        title_fontsize="small",
        frameon=False,
    )


def add_legend_beside(axes: Axes, markerscale: float = 1.0, title: str | None = None) -> None:
    """Put the legend right of the axes, where it hides no curve; ``markerscale`` enlarges its markers."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", frameon=False, borderaxespad=0.3,
            markerscale=markerscale, title=title, title_fontsize="small", alignment="left",
        )  # fmt: skip


def draw_bands(axes: Axes, run: Run, stripe: float = STRIPE_HEIGHT) -> None:
    """Show the phases: a stripe of their colours along the upper edge, and a tint of the background."""
    for begin, end, name in phase_bands(run):
        colour = phase_colour(name)
        axes.axvspan(begin, end, color=colour, alpha=TINT, linewidth=0, zorder=0)
        axes.axvspan(begin, end, ymin=1.0 - stripe, color=colour, linewidth=0, zorder=1.5)
