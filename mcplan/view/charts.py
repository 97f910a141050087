"""Charts of experiments: curves with confidence intervals, and heat maps."""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mcplan.util.text import escape_mathtext


@dataclass(frozen=True)
class Curve:
    """One curve: at each ``x`` (numbers, or texts) a value, and the lower and upper end of its interval."""

    label: str
    x: Sequence[float] | Sequence[str]
    value: np.ndarray
    low: np.ndarray
    high: np.ndarray


def curve_chart(curves: Sequence[Curve], x_label: str, y_label: str, title: str, rate: bool = False) -> Figure:
    """Return curves with their intervals: a band over numbers, bars over texts.

    Parameters
    ----------
    rate : whether the values are fractions between 0 and 1, shown as percent.
    """
    figure = Figure(figsize=(8, 4.8), layout="constrained")
    axes = figure.subplots()
    all_x = [x for curve in curves for x in curve.x]
    texts = list(dict.fromkeys(map(str, all_x))) if any(isinstance(x, str) for x in all_x) else []
    for number, curve in enumerate(curves):
        if texts:
            shift = 0.6 * ((number + 0.5) / len(curves) - 0.5)
            _error_bars(axes, np.array([texts.index(str(x)) for x in curve.x]) + shift, curve)
        else:
            _band(axes, curve)
    if texts:
        names = [escape_mathtext(textwrap.fill(text, 18)) for text in texts]
        rotation = 30 if max(map(len, texts)) > 8 and len(texts) > 4 else 0
        axes.set_xticks(range(len(texts)), names, rotation=rotation, ha="right" if rotation else "center")
    _label_axes(axes, x_label, y_label, title)
    if rate:
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    if any(curve.label for curve in curves):
        axes.legend(fontsize="small")
    return figure


def heat_chart(
    values: np.ndarray,
    x_ticks: Sequence[str],
    y_ticks: Sequence[str],
    x_label: str,
    y_label: str,
    value_label: str,
    title: str,
    rate: bool = False,
) -> Figure:
    """Return a heat map.

    Parameters
    ----------
    values : (len(y_ticks), len(x_ticks)); NaN stays blank.
    rate : whether the values are fractions between 0 and 1, shown as percent.
    """
    figure = Figure(figsize=(2.5 + 0.8 * len(x_ticks), 2 + 0.55 * len(y_ticks)), layout="constrained")
    axes = figure.subplots()
    low, high = (0.0, 1.0) if rate else (float(np.nanmin(values)), float(np.nanmax(values)))
    image = axes.imshow(values, origin="lower", aspect="auto", cmap="viridis", vmin=low, vmax=high)
    axes.set_xticks(range(len(x_ticks)), [escape_mathtext(tick) for tick in x_ticks])
    axes.set_yticks(range(len(y_ticks)), [escape_mathtext(tick) for tick in y_ticks])
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            text = f"{100 * value:.0f} %" if rate else f"{value:.3g}"
            colour = "white" if value < low + 0.55 * (high - low) else "black"
            axes.text(column, row, text, ha="center", va="center", color=colour, fontsize="small")
    _label_axes(axes, x_label, y_label, title, grid=False)
    percent = (lambda v, _: f"{100 * v:.0f} %") if rate else None
    figure.colorbar(image, label=escape_mathtext(value_label), format=percent)
    return figure


def _band(axes: Axes, curve: Curve) -> None:
    """Draw a curve over numbers, with its intervals as a band."""
    order = np.argsort(np.array(curve.x, dtype=float), kind="stable")
    x = np.array(curve.x, dtype=float)[order]
    (line,) = axes.plot(x, curve.value[order], marker="o", markersize=4, label=escape_mathtext(curve.label))
    axes.fill_between(x, curve.low[order], curve.high[order], color=line.get_color(), alpha=0.18, linewidth=0)


def _error_bars(axes: Axes, x: np.ndarray, curve: Curve) -> None:
    """Draw the values of a curve at positions x, with their intervals as bars."""
    lengths = np.array([curve.value - curve.low, curve.high - curve.value])
    axes.errorbar(x, curve.value, yerr=np.maximum(lengths, 0.0), fmt="o", capsize=3, label=escape_mathtext(curve.label))


def _label_axes(axes: Axes, x_label: str, y_label: str, title: str, grid: bool = True) -> None:
    axes.set_xlabel(escape_mathtext(x_label))
    axes.set_ylabel(escape_mathtext(y_label))
    axes.set_title(escape_mathtext(title), fontsize="medium")
    if grid:
        axes.grid(alpha=0.3)
