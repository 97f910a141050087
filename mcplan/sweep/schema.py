"""Schema of the experiment file.

    mcplan: 1
    name: friction
    question: How rough must the stairs be?
    scenarios: [stairs, walk]
    set: {simulation.physics: contact}                      # the same for every case
    grid: {environment.friction: [0.4, 0.6], control.solver: [DAQP, OSQP]}      # every combination
    zip: {parameters.riser: [0.1, 0.15], parameters.tread: [0.30, 0.28]}        # first with first, second with second
    cases: [{control.weights.com: 10}, {control.weights.com: 100, control.gains.com_kp: 30}]    # one after the other
    where: scenario == "walk" or environment.friction > 0.5     # of all combinations those for which this holds
    seeds: {from: 1000, count: 20}                          # or a list
    variants: true                                          # the seed is also that of the scenario's variant
    collect: [success, plan_time]
    figures: [{x: environment.friction, y: success, by: scenario}]
    expect: {success: ">= 0.9"}

``grid``, ``zip`` and ``cases`` multiply. A key in them and in ``set`` is the path of any field of the scenario, as
after ``--set`` on the command line.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mcplan.scene.spec import Positive, Spec

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$", max_length=100)]
Values = Annotated[tuple[Any, ...], Field(min_length=1)]
Seed = Annotated[int, Field(ge=0)]


class SeedRange(Spec):
    """The seeds ``from``, ``from + 1``, ...: ``count`` of them."""

    count: Annotated[int, Field(ge=1)]
    """Number of seeds."""
    first: Seed = Field(0, alias="from")
    """First seed."""


class Limits(Spec):
    """Limits of one case."""

    time: Positive = 900.0
    """Clock time for planning and simulation together, s."""
    memory_gb: Positive = 4.0
    """Resident memory of the process that runs the case, 10⁹ bytes."""


class FigureSpec(Spec):
    """One figure.

    ``y`` over ``x``, a curve for each value of ``by``: for flags the rate with Wilson intervals, otherwise the mean
    with a confidence band. If ``value`` is given: a heat map of this result over ``x`` and ``y``.
    """

    x: str
    """Field or result along x."""
    y: str
    """Result along y; for a heat map a field."""
    by: str | None = None
    """Field or result with one curve for each of its values."""
    value: str | None = None
    """Result that a heat map shows."""
    where: str | None = None
    """Only cases for which this condition holds."""
    title: str = ""
    """Title above the figure."""

    @model_validator(mode="after")
    def _one_kind(self) -> "FigureSpec":
        if self.value is not None and self.by is not None:
            raise ValueError("a heat map (`value`) has no curves: leave `by` out")
        return self


class TableSpec(Spec):
    """One table: a row per combination of ``rows``; columns ``values``, then ``each`` for every value of ``by``."""

    rows: Annotated[tuple[str, ...], Field(min_length=1)]
    """Fields; the table has a row for each combination of their values."""
    values: tuple[str, ...] = ()
    """Result columns."""
    by: str | None = None
    """Field; the columns ``each`` are repeated for each of its values."""
    each: tuple[str, ...] = ()
    """Result columns that are repeated for each value of ``by``."""
    against: Any = None
    """A value of ``by``; the columns ``each`` then show the median ratio to the same case with that value."""
    where: str | None = None
    """Only cases for which this condition holds."""
    title: str = ""
    """Title above the table."""

    @model_validator(mode="after")
    def _each_by(self) -> "TableSpec":
        if (self.by is None) != (not self.each):
            raise ValueError("`by` and `each` are given together: `each` lists the columns for every value of `by`")
        if self.against is not None and self.by is None:
            raise ValueError("`against` is one of the values of `by`, which is not given")
        if not self.values and not self.each:
            raise ValueError("no columns: give `values`, or `by` and `each`")
        return self


class ExpectSpec(Spec):
    """Thresholds for the cases for which ``where`` holds."""

    where: str | None = None
    """Only cases for which this condition holds."""
    columns: Annotated[dict[str, str], Field(min_length=1)]
    """Threshold of each result, for example ``">= 0.9"``."""


class ExperimentSpec(Spec):
    """Content of the experiment file."""

    mcplan: Literal[1]
    """Version of the format."""
    name: Name
    """Name of the experiment and of the directory with its results."""
    question: str = ""
    """Question that the experiment answers."""
    scenarios: Annotated[tuple[str, ...], Field(min_length=1)]
    """Bundled names, or paths relative to this file."""
    steps: Literal["plan", "simulate"] = "simulate"
    """``plan``: plan and its certificate; ``simulate``: also the simulation and the certificate of the run."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Fields with one value for all cases."""
    grid: dict[str, Values] = Field(default_factory=dict)
    """Fields with lists of values; every combination is run."""
    zip: dict[str, Values] = Field(default_factory=dict)
    """Fields with lists of values of equal length: the first of each together, the second of each, and so on."""
    cases: tuple[Annotated[dict[str, Any], Field(min_length=1)], ...] | None = Field(None, min_length=1)
    """Sets of fields with their values; each set is run."""
    where: str | None = None
    """Only combinations of scenarios and fields for which this condition holds; others are not run."""
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] | SeedRange = (0,)
    """Seeds of the simulation and of the variant; without ``variants`` also of the planner."""
    variants: bool = False
    """Whether the seed draws the scenario's variant."""
    limits: Limits = Limits()
    """Limits of one case."""
    keep: tuple[Literal["plan", "report", "run"], ...] = ("plan",)
    """Files to keep for each case, named by its hash."""
    collect: tuple[str, ...] = ()
    """Result columns of the tables; all results are stored in any case."""
    figures: tuple[FigureSpec, ...] = ()
    """Figures drawn from the results."""
    tables: tuple[TableSpec, ...] = ()
    """Tables made from the results."""
    expect: dict[str, str] | tuple[ExpectSpec, ...] = Field(default_factory=dict)
    """Thresholds by result; if one is not met, the command exits with status 1."""

    @model_validator(mode="after")
    def _parallel_lists(self) -> "ExperimentSpec":
        lengths = {key: len(values) for key, values in self.zip.items()}
        if len(set(lengths.values())) > 1:
            found = ", ".join(f"{key} {length}" for key, length in lengths.items())
            raise ValueError(
                f"the lists of `zip` run in parallel, so they must be equally long; their lengths: {found}"
            )
        return self
