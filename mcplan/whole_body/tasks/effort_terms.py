"""Row counts of tasks, and cost terms of tasks on contact forces and torques."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mcplan.errors import InputError
from mcplan.robot.terms import Terms
from mcplan.whole_body.collision_avoidance import AccelerationLimit
from mcplan.whole_body.contact import ContactConstraint
from mcplan.whole_body.tasks.forces import TorqueTask
from mcplan.whole_body.tasks.posture import PostureTask
from mcplan.whole_body.tasks.task import checked_rows, unknown_of, weights

Array = NDArray[np.float64]


def split_tasks(tasks: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Return the tasks on accelerations, and those on forces and torques."""
    on_accelerations = [unknown_of(task) == "vd" for task in tasks]
    return (
        [task for task, is_motion in zip(tasks, on_accelerations, strict=True) if is_motion],
        [task for task, is_motion in zip(tasks, on_accelerations, strict=True) if not is_motion],
    )


def row_counts(
    tasks: Sequence[Any], limits: Sequence[AccelerationLimit], joints: int | None = None
) -> tuple[int, int, bool, int]:
    """Return the rows of tasks on accelerations and on forces, whether there is a torque task, the rows of limits.

    Parameters
    ----------
    joints : number of joints, which tasks on all joints must have; None: not checked.

    Raises
    ------
    InputError : a task on all joints has another number of joints, a torque task is not diagonal, or a force task is.
    """
    for task in tasks:
        unknown = unknown_of(task)
        if unknown != "vd" and task.diagonal != (unknown == "torque"):
            rule = "a task on torques is diagonal: rows() returns indices of joints and their torques"
            rule = rule if unknown == "torque" else "a task on forces is not diagonal: rows() returns a matrix"
            raise InputError(f"task {task.key[0]}: diagonal is {task.diagonal}, but {rule}")
        if joints is not None and isinstance(task, PostureTask | TorqueTask) and task.dimension != joints:
            field, hint = ("position", " (q[7:])") if isinstance(task, PostureTask) else ("torque", "")
            name = type(task).__name__
            raise InputError(f"{name}: {field} has {task.dimension} numbers, expected {joints}{hint}")
    motions, efforts = split_tasks(tasks)
    return (
        sum(task.dimension for task in motions if not task.diagonal),
        sum(task.dimension for task in efforts if not task.diagonal),
        any(task.diagonal for task in efforts),
        sum(limit.dimension for limit in limits),
    )


def fill_efforts(
    data: dict[str, Array],
    slices: Sequence[slice],
    contacts: Sequence[ContactConstraint],
    terms: Terms,
    tasks: Sequence[Any],
) -> float:
    """Write the terms ``|A_f f - b_f|²`` and ``tau' W tau - 2 g' tau``; return the constant part of the latter.

    Parameters
    ----------
    data : name -> array of the declared problem's parameters.
    slices : slice of each contact among the force unknowns.
    contacts : the contacts in the order of the problem.
    terms : terms of the state.
    tasks : tasks on contact forces and torques.

    Raises
    ------
    InputError : a task on the force of a patch that is not in contact.
    """
    row, constant = 0, 0.0
    for name in ("force_task_matrix", "torque_cost", "torque_pull"):
        if name in data:
            data[name][:] = 0.0
    for task in tasks:
        w = weights(task)
        if unknown_of(task) == "torque":
            joints, reference = checked_rows(task, task.rows(terms), len(terms.v))
            data["torque_cost"][joints] += w
            data["torque_pull"][joints] += w * reference
            constant += float(w @ (reference * reference))
            continue
        contact, force_slice = _contact_of(task.patch, contacts, slices)
        A, b = checked_rows(task, task.rows(terms, contact), contact.shape.unknowns)
        block, root = slice(row, row + len(b)), np.sqrt(w)
        data["force_task_matrix"][block, force_slice] = root[:, None] * A
        data["force_task_target"][block] = root * b
        row += len(b)
    return constant


def _contact_of(
    patch: str, contacts: Sequence[ContactConstraint], slices: Sequence[slice]
) -> tuple[ContactConstraint, slice]:
    """Return the contact of a patch, and its slice of the force unknowns."""
    for contact, force_slice in zip(contacts, slices, strict=True):
        if contact.patch == patch:
            return contact, force_slice
    known = ", ".join(contact.patch for contact in contacts) or "none"
    raise InputError(f"task on the force of {patch}, which is not in contact: {known}")
