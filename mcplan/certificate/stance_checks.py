"""Checks of a plan against its scenario: start and goal, contacts on their supports that stay where they are."""

from collections.abc import Iterator

import numpy as np

from mcplan.certificate.contact_checks import made_up
from mcplan.certificate.goal_checks import Allowed, Judge, States, place_errors, postures
from mcplan.certificate.independent import Mechanism, away, rotation_of, rotation_vector
from mcplan.certificate.report import Check
from mcplan.certificate.tolerances import PLAN_ANGLE_DEG, PLAN_COM, PLAN_OBJECT, PLAN_OBJECT_DEG, PLAN_PLACE
from mcplan.planning.plan import Plan
from mcplan.record.records import RobotRecord
from mcplan.robot.anatomy import HRP2_MASS_KG
from mcplan.robot.patch import MOUNT
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Bar
from mcplan.scene.spec import ContactSpec

CARRIES = 5.0
"""N: what `planner.require` asks for carries more than this in some stance, for a robot of the mass of HRP-2."""


def stance_checks(plan: Plan, robot: RobotRecord) -> Iterator[Check]:
    """Yield the lines of the certificate of a plan that concern its scenario."""
    yield from _on_supports(plan, robot)
    wrong = list(made_up(plan))
    name = "contacts as the scenario has them"
    yield Check(name, float(len(wrong)), "options", "== 0", not wrong, "", "; ".join(wrong))
    yield from _kept(plan)
    yield from _required(plan, CARRIES * sum(link.mass for link in robot.links) / HRP2_MASS_KG)
    stances, environment = plan.stances, plan.scenario.environment
    q = np.array([stance.q for stance in stances])
    patches = [patch.name for patch in robot.patches]
    motion = Mechanism(robot).motion(q, patches=patches)
    supports = {
        patch: np.array([next((c.support for c in stance.contacts if c.patch == patch), "") for stance in stances])
        for patch in patches
    }
    objects = {
        thing.name: np.array([stance.objects.get(thing.name, thing.pose) for stance in stances])
        for thing in environment.objects
    }
    states = States(q, motion.com, motion.R, motion.p, supports, objects, lambda k: f"stance {k}")
    allowed = Allowed(
        PLAN_PLACE, float(np.deg2rad(PLAN_ANGLE_DEG)), PLAN_COM, PLAN_OBJECT, float(np.deg2rad(PLAN_OBJECT_DEG))
    )
    judge = Judge(robot, environment, states, allowed, postures(plan.scenario.robot))
    yield from judge.start(plan.scenario.document.data)
    yield from judge.checks(plan.scenario.document.data)


def _on_supports(plan: Plan, robot: RobotRecord) -> Iterator[Check]:
    """Yield the lines that say how far planned contacts are from the surfaces and bars that the scenario has."""
    patches = {patch.name: patch for patch in robot.patches}
    off, turned, rough = [(0.0, "", "")], [(0.0, "", "")], [(0.0, "", "")]
    for k, stance in enumerate(plan.stances):
        environment = plan.scenario.environment.placed(stance.objects)
        for contact in stance.contacts:
            where = f"{contact.patch} on {contact.support}, stance {k}"
            if contact.patch == MOUNT:
                far, turn = off_base(contact, plan.scenario.start.q)
                off.append((far, where, f"{where} is {far:.4g} m off the base of the start"))
                turned.append((turn, where, f"{where} is turned by {turn:.4g} deg out of the base of the start"))
                continue
            support = environment.supports.get(contact.support)
            if support is None or contact.patch not in patches:
                off.append((np.inf, where, f"{where}: there is no such patch or support"))
                continue
            said = ContactSpec.model_validate({"patch": contact.patch, "surface": contact.support, **contact.options})
            said = said.model_copy(update={"kind": contact.kind})
            away, angle = place_errors(said, patches[contact.patch], support, contact.R[None], contact.p[None])
            off.append((float(away[0]), where, f"{where} is {away[0]:.4g} m off its support"))
            degrees = float(np.rad2deg(angle[0]))
            turned.append((degrees, where, f"{where} is turned by {degrees:.4g} deg out of its support"))
            beyond = _beyond_what_it_gives(contact, support.friction if said.friction is None else said.friction,
                                           isinstance(support, Bar))  # fmt: skip
            rough.append((beyond, where, f"{where} counts on {beyond:.4g} more friction than there is"))
    for name, found, unit, bound in (
        ("contacts on their supports", off, "m", PLAN_PLACE),
        ("contacts on their supports, angle", turned, "deg", PLAN_ANGLE_DEG),
        ("friction of the supports", rough, "more than there is", 1e-9),
    ):
        value, where, _ = max(found, key=lambda item: np.inf if np.isnan(item[0]) else item[0])
        wrong = [text for amount, _, text in found if not amount <= bound]
        yield Check(name, value, unit, f"<= {bound:g}", not wrong, where, "; ".join(wrong))


def off_base(contact: Contact, q: np.ndarray) -> tuple[float, float]:
    """Return by how much (m, deg) what holds a fixed base is off the base's place in the scenario."""
    between = rotation_of(q[3:7, None])[..., 0].T @ contact.R
    turn = float(np.linalg.norm(rotation_vector(between[None])[0]))
    return float(np.linalg.norm(contact.p - q[:3])), float(np.rad2deg(turn))


def _beyond_what_it_gives(contact: Contact, friction: float, on_bar: bool) -> float:
    """Return by how much a contact's friction is beyond that of its support; a grasp has none."""
    return 0.0 if contact.kind == "grasp" and on_bar else max(0.0, contact.friction - friction)


def _kept(plan: Plan) -> Iterator[Check]:
    """Yield the line that says how far contacts that two stances share have moved, on an object relative to it."""
    off, where, wrong = 0.0, "", []
    bound = PLAN_PLACE
    for k in range(1, len(plan.stances)):
        before, after = plan.stances[k - 1], plan.stances[k]
        mine = {contact.patch: contact for contact in before.contacts}
        changed = sum(c.patch not in mine or c.support != mine[c.patch].support for c in after.contacts)
        changed += sum(patch not in after.patches for patch in mine)
        if changed > 1:
            wrong.append(f"stance {k}: {changed} contacts change at once")
        for contact in after.contacts:
            was = mine.get(contact.patch)
            if was is None or was.support != contact.support:
                continue
            moved = _moved(plan, was, contact, k)
            if not moved <= off:
                off, where = moved, f"{contact.patch}, stance {k}"
            if not moved <= bound:
                wrong.append(f"stance {k}: {contact.patch} is {moved:.4g} m (rad) from where it was, without a step")
    yield Check("kept contacts", off, "m, rad", f"<= {bound:g}", not wrong, where, "; ".join(wrong))


def _required(plan: Plan, carries: float) -> Iterator[Check]:
    """Yield the line that says whether what the scenario requires carries more than this (N); none without any."""
    least, where, wrong = np.inf, "", []
    for group in plan.scenario.planner.require:
        names = (group,) if isinstance(group, str) else group
        loads = [np.linalg.norm(s.wrenches[name][:3]) for s in plan.stances for name in names if name in s.wrenches]
        most, said = float(max(loads, default=0.0)), " or ".join(names)
        if not most >= least:
            least, where = most, said
        if not most > carries:
            wrong.append(f"{said} carries no more than {most:.4g} N in any stance")
    if where:
        yield Check("required contacts", least, "N", f"> {carries:.3g}", not wrong, where, "; ".join(wrong))


def _moved(plan: Plan, was: Contact, now: Contact, k: int) -> float:
    """Return how far a contact has moved from stance k - 1 to k along the directions that it constrains (m, rad)."""
    R, p = was.R, was.p
    if now.carrier is not None:
        thing = next(t for t in plan.scenario.environment.objects if t.name == now.carrier.name)
        first, second = (plan.stances[i].objects.get(thing.name, thing.pose) for i in (k - 1, k))
        R1, R2 = (rotation_of(pose[3:, None])[..., 0] for pose in (first, second))
        R, p = R2 @ R1.T @ R, second[:3] + R2 @ R1.T @ (p - first[:3])
    return float(np.linalg.norm(away(now, (now.R.T @ R)[None], ((p - now.p) @ now.R)[None])))
