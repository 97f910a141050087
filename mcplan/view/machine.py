"""Diagram of the state machine (SVG, PNG, PDF, Graphviz DOT): a row of states per stance, arrows for transitions."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from mcplan.control.criteria import labels_of
from mcplan.control.phases import CustomPhase
from mcplan.control.program import State, find_target, next_index
from mcplan.errors import InputError, either
from mcplan.settings.control import ControlSettings
from mcplan.util.files import write_text
from mcplan.util.text import escape_dot, escape_mathtext

SUFFIXES = (".svg", ".png", ".pdf", ".dot")
"""File formats of the diagram."""

COLUMN_WIDTH, ROW_HEIGHT, HALF_BOX, ARROW_DEPTH = 2.0, 1.4, (0.8, 0.16), 0.95
"""Distance of columns and rows, half the size of a box, and the depth of the arrows below a row (inch)."""

Point = tuple[float, float]
"""Position in the diagram, inch."""

Arrow = tuple[int, str | int, str]
"""Source state, target state or ``end`` or ``fail``, label of the criterion (empty: regular successor)."""


def arrows_of(states: Sequence[State], settings: ControlSettings) -> Iterator[Arrow]:
    """Yield every transition between states."""
    for k, state in enumerate(states):
        next_state = next_index(states, k)
        successor: str | int = "end" if next_state == len(states) else next_state
        jumps = {label: jump for label, jump in state.jumps.items() if jump.state != "next"}
        if "" not in jumps and labels_of(state.until or state.phase.until(settings)) - set(jumps):
            yield k, successor, ""
        for label, jump in jumps.items():
            special: dict[str, str | int | None] = {"again": k, "end": "end", "fail": "fail"}
            target = special[jump.state] if jump.state in special else find_target(states, jump, k)
            if target is not None:
                text = label or ""
                yield k, target, text + (f" (at most {jump.times})" if jump.times else "")


def save_machine(states: Sequence[State], settings: ControlSettings, path: Path, title: str) -> None:
    """Write the diagram of a state machine in the format of the suffix.

    Raises
    ------
    InputError
        The suffix is not one of ``SUFFIXES``.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise InputError(f"{path}: expected a name that ends in {either(SUFFIXES)}")
    if path.suffix.lower() == ".dot":
        write_text(path, machine_dot(states, settings, title))
    else:
        draw_machine(states, settings, title).savefig(path)


def machine_dot(states: Sequence[State], settings: ControlSettings, title: str) -> str:
    """Return the machine in the language of Graphviz."""
    lines = [f'digraph "{escape_dot(title)}" {{', "  rankdir=LR; node [shape=box];"]
    for k, state in enumerate(states):
        lines.append(f'  s{k} [label="{escape_dot(state.name)}\\nstance {state.phase.stance}"];')
    for source, to, label in arrows_of(states, settings):
        target = f"s{to}" if isinstance(to, int) else to
        lines.append(f"  s{source} -> {target}" + (f' [label="{escape_dot(label)}"]' if label else "") + ";")
    return "\n".join([*lines, "}"]) + "\n"


def draw_machine(states: Sequence[State], settings: ControlSettings, title: str) -> Figure:
    """Draw the diagram: custom states are coloured; the labels of criteria are below the boxes."""
    arrows = list(arrows_of(states, settings))
    stances = sorted({state.phase.stance for state in states})
    rows = {stance: [k for k, s in enumerate(states) if s.phase.stance == stance] for stance in stances}
    ends = ["end"] + (["fail"] if any(to == "fail" for _, to, _ in arrows) else [])
    columns = max(max(map(len, rows.values())), len(rows[stances[-1]]) + 1)
    place: dict[str | int, Point] = {}
    for row, members in enumerate(rows.values()):
        place |= {k: (COLUMN_WIDTH * column, -ROW_HEIGHT * row) for column, k in enumerate(members)}
    for i, word in enumerate(ends):
        place[word] = COLUMN_WIDTH * len(rows[stances[-1]]), -ROW_HEIGHT * (len(rows) - 1 + 0.6 * i)
    height = ROW_HEIGHT * (len(rows) + 0.6 * (len(ends) - 1))
    figure = Figure(figsize=(COLUMN_WIDTH * (columns + 0.4), height + 0.7), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlim=(-1.6, COLUMN_WIDTH * columns - 0.8), ylim=(0.75 - height, 0.8), aspect="equal")
    axes.set_title(escape_mathtext(title))
    axes.axis("off")
    for row, stance in enumerate(stances):
        axes.text(-1.5, -ROW_HEIGHT * row, f"stance {stance}", va="center", fontsize=8, color="grey")
    for k, state in enumerate(states):
        _box(axes, place[k], state, settings)
    for word in ends:
        axes.text(*place[word], word, ha="center", va="center", fontsize=9, weight="bold")
    for i, (source, to, label) in enumerate(arrows):
        number = sum(bool(other[2]) for other in arrows[:i])
        _arrow(axes, place[source], place[to], label, number)
    return figure


def _box(axes: Axes, place: Point, state: State, settings: ControlSettings) -> None:
    """Draw the box of a state, with the labels of its criteria below."""
    face, edge = ("#fff3d6", "#c07a00") if isinstance(state.phase, CustomPhase) else ("#e8eef7", "#6a83ad")
    until = state.until or state.phase.until(settings)
    ends = "\n".join(sorted(label.replace(" and ", " and\n") for label in labels_of(until)))
    corner = place[0] - HALF_BOX[0], place[1] - HALF_BOX[1]
    axes.add_patch(FancyBboxPatch(corner, 2 * HALF_BOX[0], 2 * HALF_BOX[1], boxstyle="round,pad=0", fc=face, ec=edge))
    axes.text(*place, escape_mathtext(state.name), ha="center", va="center", fontsize=8, weight="bold")
    axes.text(corner[0], corner[1] - 0.05, escape_mathtext(ends), va="top", fontsize=5.5, color="#444444")


def _arrow(axes: Axes, start: Point, end: Point, label: str, number: int) -> None:
    """Draw a transition, along the row or through the gap below it; irregular ones are red, with their criterion."""
    colour = "#b03030" if label else "#444444"
    (x0, y0), (x1, y1) = start, end
    if y0 == y1 and not label and x0 < x1:
        corners = [(x0 + HALF_BOX[0], y0), (x1 - HALF_BOX[0], y1)]
    else:
        shift = 0.15 + 0.09 * (number % 6) if label else 0.0  # so that arrows do not overlap
        gap = y0 - ARROW_DEPTH + 0.3 * shift
        corners = [(x0 + HALF_BOX[0] - 0.1 - shift, y0 - HALF_BOX[1]), (x0 + HALF_BOX[0] - 0.1 - shift, gap)]
        corners += [(x1 + shift, gap), (x1 + shift, y1 + (HALF_BOX[1] if y1 < y0 else -HALF_BOX[1]))]
        axes.text(corners[1][0] + 0.05, gap + 0.04, escape_mathtext(label), fontsize=6, color=colour)
    axes.plot(*zip(*corners, strict=True), color=colour, linewidth=0.9)
    head = {"arrowstyle": "->", "color": colour, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", corners[-1], corners[-2], arrowprops=head)
