"""A state of the user's own: centre of mass, posture, free limbs and force limits, on the contacts that there are."""

from dataclasses import dataclass

import numpy as np

from mcplan.control.command import Ramp
from mcplan.control.motion import Motion
from mcplan.control.phase import Now
from mcplan.errors import SimulationFailed
from mcplan.motion.limb_path import LimbPath, Pose
from mcplan.motion.posture import PostureTrajectory
from mcplan.motion.quintic import Quintic
from mcplan.settings.settings import ControlSettings
from mcplan.settings.states import Deed, Joints, LimbMove, Until


@dataclass
class Custom:
    """Does what a scenario says.

    Parameters
    ----------
    stance : index of the stance whose contacts are there.
    name : of the state.
    deed : what it does.
    criterion : when it ends.
    """

    stance: int
    name: str
    deed: Deed
    criterion: Until

    def replan(self, motion: Motion, t: float, now: Now) -> None:
        """Change nothing."""

    def enter(self, motion: Motion, t: float, now: Now) -> float:
        """Start the references, each from what it is now.

        Raises
        ------
        SimulationFailed
            A patch that should move is in contact, or one whose force is limited is not.
        """
        deed, T = self.deed, self.deed.over
        wrong = sorted(set(deed.limbs) & set(motion.contacts)) + sorted(set(deed.forces) - set(motion.contacts))
        if wrong:
            state = "is" if wrong[0] in motion.contacts else "is not"
            raise SimulationFailed(f"state {self.name} at t = {t:g} s: {wrong[0]} {state} in contact")
        if deed.com is not None:
            x = motion.com.sample(t)
            motion.com = Quintic(x.value, np.array(deed.com), T, x.velocity, x.acceleration, t)
        if deed.posture is not None:
            y = motion.posture.sample(t)
            motion.posture = PostureTrajectory(y.q, _with_joints(motion, y.q, deed.posture), T, y.v, y.vd, t)
        for patch, move in deed.limbs.items():
            if patch in motion.limbs:
                sample = motion.limbs[patch].sample(t)
                start = sample.R, sample.p
            else:
                start = now.pose(patch)
            motion.released.pop(patch, None)
            motion.limbs[patch] = LimbPath(start, _goal(start, move), np.zeros(3), np.zeros(3), motion.timing, t, T)
        for patch, most in deed.forces.items():
            loaded = motion.contacts[patch]
            loaded.limit = Ramp(min(now.load(patch), loaded.full), min(most, loaded.full), t, T)
        return max([T, *(motion.limbs[patch].end_time - t for patch in deed.limbs)])

    def until(self, settings: ControlSettings) -> Until:
        """Return the criterion of the scenario."""
        return self.criterion

    def leave(self, motion: Motion, t: float, now: Now) -> None:
        """Change nothing."""


def _with_joints(motion: Motion, q: np.ndarray, posture: str | Joints) -> np.ndarray:
    """Return q (7+n,) with the joints of a posture; the base stays, as contacts and centre of mass say where it is."""
    q, robot = np.array(q), motion.robot
    if isinstance(posture, str):
        q[7:] = robot.posture(posture)[7:]
        return q
    for joint, value in posture.joints.items():
        q[7 + robot.joint_names.index(joint)] = value
    return q


def _goal(start: Pose, move: LimbMove) -> Pose:
    if move.to is not None:
        return move.to.R, move.to.p
    return start[0], start[1] + np.array(move.by)
