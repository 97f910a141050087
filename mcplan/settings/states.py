"""Settings of the state machine (``control.states`` of a scenario), in the format of ``mcplan info --fsm``.

For example::

    control:
      states:
        - {state: swing, gains: {limb_kp: 600}}       # every state of this name, in every stance
        - state: approach left_sole                   # one state: its patch, its stance
          stance: 2
          until: {any: [{force: left_sole, above: 30, lasting: 0.005}, {timeout: 2, label: late}]}
          next: {late: {state: lift left_sole, times: 2}}
        - state: look                                 # a custom state, with its action
          after: shift
          stance: 1
          do: {posture: {joints: {HEAD_JOINT0: 0.5}}, over: 0.8}
          until: {finished: 0.2}
"""

from typing import Annotated

from pydantic import Field, model_validator

from mcplan.scene.spec import NotNegative, PoseSpec, Positive, Spec, Triple

CRITERION_KINDS = ("all", "any", "error", "speed", "force", "over", "elapsed", "finished", "timeout")
"""Keys of the kinds of criteria."""


class Until(Spec):
    """A criterion: exactly one of ``CRITERION_KINDS``."""

    all: "tuple[Until, ...] | None" = None
    """Criteria that hold at the same time."""
    any: "tuple[Until, ...] | None" = None
    """Criteria of which one holds."""
    error: str | None = None
    """The error of ``com`` or of a moving patch is ``below`` a bound: m or rad."""
    speed: str | None = None
    """The speed of ``com``, ``joints`` or a moving patch is ``below`` a bound: m/s or rad/s."""
    force: str | None = None
    """The force on a patch is ``above`` or ``below`` a bound, N."""
    over: str | None = None
    """The height of a moving patch over its contact is ``below`` a bound, m."""
    below: NotNegative | None = None
    """Upper bound: m, rad, m/s, rad/s or N."""
    above: NotNegative | None = None
    """Lower bound of a force, N."""
    elapsed: NotNegative | None = None
    """Time since the state began, s."""
    finished: NotNegative | None = None
    """Time since the references of the state ended, s."""
    timeout: NotNegative | None = None
    """Time since the references of the state ended, s, as a timeout for other criteria."""
    lasting: Positive | None = None
    """Time for which the criterion has to hold without interruption, s."""
    altogether: Positive | None = None
    """Total time for which the criterion has to hold, s; an interruption subtracts a tenth of its duration."""
    label: str | None = None
    """Name of the criterion in ``next`` and in the record."""

    @model_validator(mode="after")
    def _one_kind(self) -> "Until":
        given = [kind for kind in CRITERION_KINDS if getattr(self, kind) is not None]
        if len(given) != 1:
            raise ValueError(
                f"expected exactly one of {', '.join(CRITERION_KINDS)}; given: {', '.join(given) or 'none'}"
            )
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
    """A transition to a state, and how often it may be taken."""

    state: str
    """Name of the next state."""
    stance: Annotated[int, Field(ge=0)] | None = None
    """Stance of the next state; None: the nearest state of that name, in the same stance if possible."""
    times: Annotated[int, Field(ge=1)] | None = None
    """Largest number of times that the transition is taken; then the run fails."""


class LimbMove(Spec):
    """Motion of a patch in the air: to a pose, or by a displacement (m, world axes)."""

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
    """Positions of some joints; the others keep theirs."""

    joints: dict[str, float]
    """Positions by joint, rad or m."""


class StateAction(Spec):
    """Action of a custom state; an empty one waits. The contacts stay as they are."""

    com: Triple | None = None
    """Centre of mass, world, m."""
    posture: str | Joints | None = None
    """References of joints: a posture of the robot, or some joints. Contacts and centre of mass take precedence."""
    limbs: dict[str, LimbMove] = Field(default_factory=dict)
    """Motions of patches in the air."""
    forces: dict[str, NotNegative] = Field(default_factory=dict)
    """Force limits of contacts from this state on, N."""
    over: Positive = 1.0
    """Duration of the references, s."""


class StateWeights(Spec):
    """Task weights during a state, as in ``control.weights``."""

    com: NotNegative | None = None
    trunk: NotNegative | None = None
    posture: NotNegative | None = None
    limb: NotNegative | None = None
    angular_momentum: NotNegative | None = None
    """Weight of the task in this state."""


class StateGains(Spec):
    """Task gains during a state, as in ``control.gains``."""

    com_kp: NotNegative | None = None
    trunk_kp: NotNegative | None = None
    posture_kp: NotNegative | None = None
    limb_kp: NotNegative | None = None
    """Stiffness of the task in this state, 1/s²."""
    angular_momentum_kd: NotNegative | None = None
    """Damping of the angular momentum in this state, 1/s."""


class StateSpec(Spec):
    """A new state (with ``do``), or changes to the states of the plan with this name."""

    state: str
    """Name as ``mcplan info --fsm`` prints it: ``lift left_sole``, or ``lift`` for all patches."""
    stance: Annotated[int, Field(ge=0)] | None = None
    """Index of the stance of the plan; None: every stance."""
    after: str | None = None
    """State after which a new state is inserted."""
    before: str | None = None
    """State before which a new state is inserted. Without ``after`` and ``before`` it is entered by a transition only,
    and ``next`` gives its successor."""
    do: StateAction | None = None
    """Action of a new state."""
    until: Until | None = None
    """Termination criterion."""
    next: str | dict[str, str | Jump] | None = None
    """Successor by the label of the criterion that ended the state: a state, or ``next``, ``again``, ``end``, ``fail``.
    A name alone holds for every label. A transition elsewhere than to the next state skips the final action of the
    state: opening or closing a contact."""
    weights: StateWeights | None = None
    gains: StateGains | None = None
    """Weights and gains during the state."""

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
        """Return the weights and gains of the state, by their keys in ``control``."""
        groups = {"weights": self.weights, "gains": self.gains}
        given = {group: {} if spec is None else spec.model_dump(exclude_none=True) for group, spec in groups.items()}
        return {f"{group}.{key}": value for group, values in given.items() for key, value in values.items()}

    def jumps(self) -> dict[str, Jump]:
        """Return the transitions by label; an empty label stands for any label."""
        given = self.next if isinstance(self.next, dict) else {"": self.next} if self.next else {}
        return {label: Jump(state=target) if isinstance(target, str) else target for label, target in given.items()}


TRANSITION_TARGETS = ("next", "again", "end", "fail")
"""Targets of transitions other than states."""

VERBS = (
    "stand", "shift", "unload", "retract", "lift", "swing", "approach", "load", "settle",
    "take", "press", "slide", "carry", "put",
)  # fmt: skip
"""First words of the names of states of plans."""
