"""Plot of task errors: centre of mass, posture and patches, relative to the planned motion at the same time."""

import numpy as np
from matplotlib.figure import Figure

from mcplan.analysis.pace import PlannedReference
from mcplan.record.records import recorded_units, unit_of_all
from mcplan.record.run import Run
from mcplan.scene.contact import Contact
from mcplan.util.text import escape_mathtext
from mcplan.view.palette import PATCHES
from mcplan.view.plots.bands import add_legend_beside, time_axes

MAX_SAMPLES = 1500
"""Maximum number of samples of the curves of joints and patches, whose references take time to compute."""


def plot_tasks(run: Run) -> Figure:
    """Plot the errors of the tasks relative to the planned motion.

    Centre of mass [mm]; the largest joint error [rad, m], labelled at its maximum; patches in the air relative to
    their path [mm]; patches in contact relative to their planned position [mm], in the constrained directions.
    """
    units = recorded_units(run.record.robot)
    labels = ["CoM [mm]", f"worst joint [{unit_of_all(units)}]", "in the air [mm]", "in contact [mm]"]
    figure, (com, joints, air, contact) = time_axes(run, labels, "error from the plan's motion")
    t, reference = run.t - run.t[0], PlannedReference(run)
    com.plot(t, 1e3 * np.linalg.norm(run.com - reference.com(), axis=1), color="tab:red")
    rows = np.unique(np.linspace(0, len(t) - 1, min(len(t), MAX_SAMPLES)).astype(int))
    planned = reference.postures(rows)
    joint_error = np.abs(run.q[rows, 7:] - planned[:, 7:])
    if joint_error.shape[1]:
        k, i = np.unravel_index(int(np.nan_to_num(joint_error).argmax()), joint_error.shape)
        label = f"largest {joint_error[k, i]:.3f} {units[i]}:\n{run.record.joints[i]}\nat {t[rows[k]]:.2f} s"
        joints.plot(t[rows], joint_error.max(axis=1), color="black", label=escape_mathtext(label))
    for column, patch in enumerate(run.patches):
        error = np.array([_distance(reference, int(k), patch, q) for k, q in zip(rows, planned, strict=True)])
        touching, colour = run.active[rows, column], PATCHES[column % len(PATCHES)]
        air.plot(t[rows], np.where(touching, np.nan, 1e3 * error), label=escape_mathtext(patch), color=colour)
        contact.plot(t[rows], np.where(touching, 1e3 * error, np.nan), color=colour)
    for axes in (com, joints, air, contact):
        axes.set_ylim(bottom=0.0)
    add_legend_beside(joints)
    add_legend_beside(air)
    return figure


def _distance(reference: PlannedReference, k: int, patch: str, q: np.ndarray) -> float:
    """Return the position error of a patch (m); of a contact only in its constrained directions."""
    run = reference.run
    place = run.robot.frame_pose(run.q[k], patch)[:3, 3]
    target = reference.patch_reference(k, patch, q)
    if isinstance(target, Contact):
        return float(np.linalg.norm(target.selection[:, :3] @ (target.R.T @ (place - target.p))))
    return float(np.linalg.norm(place - target[:3, 3]))
