"""Result columns of an experiment: kind, description and unit of each."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["flag", "count", "margin", "ratio", "clock", "text"]


@dataclass(frozen=True)
class Column:
    """One result column.

    Parameters
    ----------
    kind : ``flag``: true or false; ``count``: a number, neither good nor bad; ``margin``: the smallest value is the
        worst; ``ratio``: the largest is the worst; ``clock``: wall-clock time, not reproducible; ``text``.
    text : description.
    unit : unit of the number; empty if it has none.
    """

    kind: Kind
    text: str
    unit: str = ""

    @property
    def preference(self) -> int:
        """1 if larger values are better, -1 if smaller ones are, otherwise 0."""
        return {"flag": 1, "margin": 1, "ratio": -1, "clock": -1}.get(self.kind, 0)


COLUMNS: dict[str, Column] = {
    "success": Column("flag", "the certificate of the run holds; with `steps: plan`, that of the plan"),
    "planned": Column("flag", "a plan was found"),
    "certified": Column("flag", "stances and motions of the plan, recomputed by independent code, hold"),
    "finished": Column("flag", "the simulation came to the end of the plan"),
    "goal_reached": Column("flag", "each item of the goal is met, the last one at the end"),
    "upright": Column("flag", "the robot did not fall"),
    "stage": Column("text", "where it ended: plan, plan certificate, simulation, certificate, case; empty on success"),
    "cause": Column("text", "what broke, in a few words that many cases share; empty on success"),
    "failure": Column("text", "violation, where and by how much"),
    "stances": Column("count", "stances of the plan"),
    "nodes": Column("count", "nodes of the search tree: stances with a feasible posture"),
    "posture_calls": Column("count", "calls of the posture generator"),
    "plan_duration": Column("count", "time that the motions of the plan take", "s"),
    "plan_equilibrium": Column("margin", "horizontal push that every stance resists, in any direction", "N"),
    "plan_equilibrium_torque": Column("margin", "the same within the torque limits", "N"),
    "plan_friction": Column("margin", "least friction margin of a stance", "N"),
    "plan_friction_ratio": Column("ratio", "largest |ft| / (mu fn) of a stance"),
    "plan_torque": Column("ratio", "largest share of a torque limit in a stance"),
    "plan_clearance": Column("margin", "least distance between bodies in a stance", "m"),
    "plan_position": Column("margin", "least distance to a joint limit in a stance", "rad"),
    "duration": Column("count", "simulated time", "s"),
    "worst_friction_margin": Column("margin", "smallest mu fn - |ft| of the run", "N"),
    "worst_friction_ratio": Column("ratio", "largest |ft| / (mu fn) of the run"),
    "worst_torque_ratio": Column("ratio", "largest share of a torque limit in the run"),
    "worst_velocity_ratio": Column("ratio", "largest share of a velocity limit in the run"),
    "worst_position_margin": Column("margin", "least distance to a joint limit in the run", "rad"),
    "worst_clearance": Column("margin", "least distance between bodies in the run", "m"),
    "worst_slip": Column("ratio", "largest drift of a contact in the run", "m"),
    "solver_failures": Column(
        "ratio", "control steps whose program was solved in slack form, or replaced by the damped hold"
    ),
    "eom_residual": Column("ratio", "largest residual of the equation of motion in the run", "N, N m"),
    "plan_time": Column("clock", "clock time of planning", "s"),
    "run_time": Column("clock", "clock time of the simulation", "s"),
    "verify_time": Column("clock", "clock time of the certificates", "s"),
    "control_time": Column("clock", "median clock time of a control step", "ms"),
    "control_time_99": Column("clock", "99th percentile of the same", "ms"),
}

RUN_FLAGS = ("finished", "goal_reached", "upright")
"""Flags that a case with ``steps: plan`` does not have."""

DEFAULT_COLUMNS = ("success", "stances", "plan_time", "run_time", "stage")
"""Columns of the table if the file lists none."""


def with_flags(row: Mapping[str, Any], steps: str) -> dict[str, Any]:
    """Return a row with each missing flag set to false; with ``steps: plan``, `RUN_FLAGS` stay missing.

    A killed case has only ``success``; rates are over all cases, so its other flags count as false.
    """
    flags = (name for name, column in COLUMNS.items() if column.kind == "flag")
    missing = [name for name in flags if row.get(name) is None and (steps == "simulate" or name not in RUN_FLAGS)]
    return {**row, **dict.fromkeys(missing, False)}


def kind_of(name: str, values: Iterable[Any]) -> Kind:
    """Return the kind of a column; if not in ``COLUMNS``, infer it from the values."""
    column = COLUMNS.get(name)
    if column is not None:
        return column.kind
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, bool) for value in present):
        return "flag"
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in present)
    return "count" if present and numbers else "text"
