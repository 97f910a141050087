"""What the tasks have left to do: the distance to where each phase leads, and how well contacts keep their places."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.sim.run import Run
from mcplan.view.plots.bands import beside, time_axes

SAMPLES = 2000
"""Points of the curves of patches, whose poses are computed one by one."""


def plot_tasks(run: Run) -> Figure:
    """Plot the distance to the stance that each phase leads to.

    Centre of mass [m] and the joint that is farthest [rad] from the posture of the stance; the patches in the air from
    the place that they go to [m]; and the patches in contact from their planned place [mm].
    """
    labels = ["CoM [m]", "joints [rad]", "in the air [m]", "in contact [mm]"]
    figure, (com, joints, air, contact) = time_axes(run, labels, "distance to the stance that the phase leads to")
    t = run.t - run.t[0]
    aim = _aims(run)
    target = np.array([stance.q for stance in run.plan.stances])
    place = np.array([run.robot.com(q) for q in target])
    com.plot(t, np.linalg.norm(run.com - place[aim], axis=1), color="tab:red")
    joints.plot(t, np.abs(run.q[:, 7:] - target[aim][:, 7:]).max(axis=1, initial=0.0), color="black")
    rows = np.unique(np.linspace(0, len(t) - 1, min(len(t), SAMPLES)).astype(int))
    for column, patch in enumerate(run.patches):
        off = np.array([_distance(run, int(k), patch, int(aim[k])) for k in rows])
        touching = run.active[rows, column]
        (line,) = air.plot(t[rows], np.where(touching, np.nan, off), label=patch)
        contact.plot(t[rows], np.where(touching, 1e3 * off, np.nan), color=line.get_color())
    for axes in (com, joints, air, contact):
        axes.set_ylim(bottom=0.0)
    beside(air)
    return figure


def _aims(run: Run) -> np.ndarray:
    """Return the stance that every sample leads to, (N,); where a phase names none, that of the phase before."""
    stances: list[int] = []
    for phase in run.record.phases:
        stances.append(phase.stance if phase.stance is not None else (stances[-1] if stances else 0))
    return np.array(stances)[run.phase]


def _distance(run: Run, k: int, patch: str, aim: int) -> float:
    """Return the distance of a patch from its contact: in contact the planned one, in the air the next one; m or NaN.

    Directions that the contact leaves free do not count.
    """
    stances = run.plan.stances
    if run.active[k, run.patches.index(patch)]:
        stance = stances[run.stance_of(k, patch)]
    else:
        stance = next((s for s in stances[aim:] if patch in s.patches), None)
        if stance is None:
            return np.nan
    contact = stance.contact(patch)
    offset = contact.R.T @ (run.robot.frame_pose(run.q[k], patch)[:3, 3] - contact.p)
    return float(np.linalg.norm(contact.selection[:, :3] @ offset))
