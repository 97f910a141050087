"""What all plots of a run share: time axes with the phases behind them."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from mcplan.sim.run import Run
from mcplan.view.phase_bands import band_colours, phase_bands


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
    rows[-1].set_xlim(0.0, float(run.t[-1] - run.t[0]))
    figure.suptitle(f"{run.scenario.name}: {title}")
    kinds = {name.split(" ")[0]: colour for name, colour in _colours(run).items()}
    figure.legend(
        handles=[Patch(color=colour, alpha=0.45, label=kind) for kind, colour in kinds.items()],
        loc="outside lower center",
        ncols=min(len(kinds), 8),
        fontsize="small",
        title="phase",
        title_fontsize="small",
        frameon=False,
    )
    return figure, rows


def beside(axes: Axes, markerscale: float = 1.0) -> None:
    """Put the legend right of the axes, where it hides no curve; ``markerscale`` enlarges its markers."""
    if axes.get_legend_handles_labels()[0]:
        axes.legend(
            loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small", frameon=False, borderaxespad=0.3,
            markerscale=markerscale,
        )  # fmt: skip


def draw_bands(axes: Axes, run: Run) -> None:
    """Colour the background by phase."""
    colours = _colours(run)
    for begin, end, name in phase_bands(run):
        axes.axvspan(begin, end, color=colours[name], alpha=0.35, linewidth=0)


def _colours(run: Run) -> dict[str, str]:
    return band_colours([name for _, _, name in phase_bands(run)])
