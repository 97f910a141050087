"""The state machine as a scenario writes it, and as ``mcplan info --fsm`` prints it.

For example::

    control:
      states:
        - {state: swing, gains: {limb_kp: 600}}       # every state of this name, in every stance
        - state: approach left_sole                   # one state: its patch, its stance
          stance: 2
          until: {any: [{force: left_sole, above: 30, lasting: 0.005}, {timeout: 2, label: late}]}
          next: {late: {state: lift left_sole, times: 2}}
        - state: look                                 # a state of one's own: it says what to do
          after: shift
          stance: 1
          do: {posture: {joints: {HEAD_JOINT0: 0.5}}, over: 0.8}
          until: {finished: 0.2}
"""

from typing import Annotated

from pydantic import Field, model_validator

from mcplan.scene.spec import NotNegative, PoseSpec, Positive, Spec, Triple

KINDS = ("all", "any", "error", "speed", "force", "over", "elapsed", "finished", "timeout")


class Until(Spec):
    """A criterion: exactly one of ``KINDS``."""

    all: "tuple[Until, ...] | None" = None
    """Criteria that hold at the same time."""
    any: "tuple[Until, ...] | None" = None
    """Criteria that hold at the same time; or the first of them that holds."""
    error: str | None = None
    """Of ``com`` or a patch on its way, ``below`` a bound: m or rad."""
    speed: str | None = None
    """Of ``com``, ``joints`` (speed) or a patch on its way, ``below`` a bound: m or rad, m/s or rad/s."""
    force: str | None = None
    """Of a patch, ``above`` or ``below`` a bound, N."""
    over: str | None = None
    """A patch on its way is over its place, ``below`` a height, m."""
    below: NotNegative | None = None
    """The bound: m, rad, m/s, rad/s or N."""
    above: NotNegative | None = None
    """The same."""
    elapsed: NotNegative | None = None
    """s since the state began."""
    finished: NotNegative | None = None
    """s since its references ended."""
    timeout: NotNegative | None = None
    """The same, for what has not come about."""
    lasting: Positive | None = None
    """How long it has to hold without a break, s."""
    altogether: Positive | None = None
    """How long it has to hold altogether, s; a break takes back a tenth of its length."""
    label: str | None = None
    """By which ``next`` and the record know it."""

    @model_validator(mode="after")
    def _one_kind(self) -> "Until":
        given = [kind for kind in KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(f"expected exactly one of {', '.join(KINDS)}; given: {', '.join(given) or 'none'}")
        bounds = [name for name in ("below", "above") if getattr(self, name) is not None]
        wanted = {"error": ["below"], "speed": ["below"], "over": ["below"]}.get(given[0], [])
        if given[0] == "force":
            if len(bounds) != 1:
                raise ValueError("a force is either `above` or `below` a bound")
        elif bounds != wanted:
            raise ValueError(
                f"`{given[0]}` takes {'`below`' if wanted else 'no bound'}; given: {', '.join(bounds) or 'none'}"
            )
        if self.lasting is not None and self.altogether is not None:
            raise ValueError("a criterion is either `lasting` or met `altogether` for so long")
        if (self.all or self.any) is not None and not (self.all or self.any):
            raise ValueError(f"`{given[0]}` needs at least one criterion")
        return self


class Jump(Spec):
    """A transition: to a state by name, and how many times at most; after that the run fails."""

    state: str
    """Its name."""
    stance: Annotated[int, Field(ge=0)] | None = None
    """None: the nearest of that name, in the same stance if there is one."""
    times: Annotated[int, Field(ge=1)] | None = None
    """At most; after that the run fails."""


class LimbMove(Spec):
    """Where a patch that touches nothing goes: to a pose, or by so much from where it is (m, world axes)."""

    to: PoseSpec | None = None
    """A pose in the world."""
    by: Triple | None = None
    """A displacement, world axes, m."""

    @model_validator(mode="after")
    def _one(self) -> "LimbMove":
        if (self.to is None) == (self.by is None):
            raise ValueError("give either `to`, a pose, or `by`, a displacement")
        return self


class Joints(Spec):
    """Joints that move; the others stay."""

    joints: dict[str, float]
    """Positions by joint, rad or m."""


class StateAction(Spec):
    """What a state of one's own does; with nothing in it, it waits. The contacts stay as they are."""

    com: Triple | None = None
    """Centre of mass, world, m."""
    posture: str | Joints | None = None
    """A posture of the robot, or some joints: their references. What the contacts and the centre of mass need goes
    first."""
    limbs: dict[str, LimbMove] = Field(default_factory=dict)
    """Where patches go that touch nothing."""
    forces: dict[str, NotNegative] = Field(default_factory=dict)
    """The most that a contact may carry from then on, N."""
    over: Positive = 1.0
    """How long the references take, s."""


class StateWeights(Spec):
    """Task weights that hold in a state, as in ``control.weights``."""

    com: NotNegative | None = None
    trunk: NotNegative | None = None
    posture: NotNegative | None = None
    limb: NotNegative | None = None
    angular_momentum: NotNegative | None = None
    """Weight of the task in this state."""


class StateGains(Spec):
    """Task gains that hold in a state, as in ``control.gains``."""

    com_kp: NotNegative | None = None
    trunk_kp: NotNegative | None = None
    posture_kp: NotNegative | None = None
    limb_kp: NotNegative | None = None
    """Stiffness of the task in this state, 1/s²."""
    angular_momentum_kd: NotNegative | None = None
    """Damping of the angular momentum in this state, 1/s."""


class StateSpec(Spec):
    """A state that is new (it has ``do``), or what is different about those of the plan that have this name."""

    state: str
    """As ``mcplan info --fsm`` prints it: ``lift left_sole``, or without the patch for all of them."""
    stance: Annotated[int, Field(ge=0)] | None = None
    """Index of the stance of the plan; None is every stance."""
    after: str | None = None
    """A new state comes right after this one."""
    before: str | None = None
    """Where a new state goes; without either it is entered by a transition only, and ``next`` says what follows it."""
    do: StateAction | None = None
    """What a new state does."""
    until: Until | None = None
    """What ends it."""
    next: str | dict[str, str | Jump] | None = None
    """By the label of the criterion that ended the state: the state that follows, or ``next``, ``again``, ``end``,
    ``fail``. A name alone holds for every label. What leads elsewhere than to the next state leaves undone what the
    state would do at its end: open a contact, or close it."""
    weights: StateWeights | None = None
    gains: StateGains | None = None
    """Weights and gains that hold in it."""

    @model_validator(mode="after")
    def _new_or_not(self) -> "StateSpec":
        if self.do is None and (self.after or self.before):
            raise ValueError("`after` and `before` place a new state, which needs `do` (`do: {}` waits)")
        if self.after and self.before:
            raise ValueError("give `after` or `before`, not both")
        if self.do is not None and self.until is None:
            raise ValueError("a new state needs `until`")
        return self

    def task_values(self) -> dict[str, float]:
        """Return the weights and gains that hold in it, by their keys in ``control``."""
        groups = {"weights": self.weights, "gains": self.gains}
        given = {group: {} if each is None else each.model_dump(exclude_none=True) for group, each in groups.items()}
        return {f"{group}.{key}": value for group, values in given.items() for key, value in values.items()}

    def jumps(self) -> dict[str, Jump]:
        """Return the transitions by label; an empty label is any."""
        given = self.next if isinstance(self.next, dict) else {"": self.next} if self.next else {}
        return {label: Jump(state=to) if isinstance(to, str) else to for label, to in given.items()}


WORDS = ("next", "again", "end", "fail")
"""Where a transition leads beside the states."""

VERBS = (
    "stand", "shift", "unload", "retract", "lift", "swing", "approach", "load", "settle",
    "take", "press", "slide", "carry", "put",
)  # fmt: skip
"""First words of the names of all states that a plan may have."""
