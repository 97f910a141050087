"""The robot in MuJoCo, body by body from the numbers of the record.

The model is built through ``MjSpec`` from the numbers in the record, on which all checks are based; MuJoCo's URDF
reader would fuse and drop links. No code is shared with the back end ``mujoco``, whose bodies come from mcplan's own
tree with merged links.
"""

from collections.abc import Sequence

import mujoco
import numpy as np

from mcplan.certificate.engines.contract import (
    BASE,
    STANDARD_GRAVITY,
    Engine,
    EngineDistances,
    EngineSample,
    JointDescription,
    body_row,
)
from mcplan.certificate.engines.mujoco_distances import MujocoDistances
from mcplan.certificate.engines.mujoco_model import add_links, quat_wxyz, rotation_wxyz, set_inertias, state_indices
from mcplan.record.records import RobotRecord, RunRecord

SITE = mujoco.mjtObj.mjOBJ_SITE


class MujocoEngine(Engine):
    """Recursive Newton-Euler, sites and energies of MuJoCo, without contacts and constraints."""

    name = "mujoco"
    version = str(mujoco.__version__)

    def __init__(self, robot: RobotRecord, patches: Sequence[str]):
        spec = mujoco.MjSpec()
        spec.compiler.degree = False
        spec.option.gravity = [0.0, 0.0, -STANDARD_GRAVITY]
        spec.option.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        bodies = add_links(spec, robot)
        named = {patch.name: patch for patch in robot.patches}
        for name in patches:
            patch = named[name]
            bodies[patch.link].add_site(name=f"patch:{name}", pos=patch.p, quat=quat_wxyz(np.array(patch.R)))
        self._model = model = spec.compile()
        set_inertias(model, robot)
        self._data = mujoco.MjData(model)
        self._sites = [model.site(f"patch:{name}").id for name in patches]
        self._bodies = [model.body(f"link:{named[name].link}").id for name in patches]
        self._qpos_index, self._qvel_index = state_indices(model, robot)
        self._weight = STANDARD_GRAVITY * sum(link.mass for link in robot.links)

    def sample(self, x: np.ndarray, u: np.ndarray, a: np.ndarray, wrench: np.ndarray) -> EngineSample:
        """Recompute one sample; see ``Engine``."""
        model, data = self._model, self._data
        energy = self.energy(x, u)
        data.qacc[self._qvel_index] = a
        force, loads = np.zeros(model.nv), np.zeros(model.nv)
        mujoco.mj_rne(model, data, 1, force)
        twist = np.empty((len(self._sites), 6))
        for k, (site, body) in enumerate(zip(self._sites, self._bodies, strict=True)):
            mujoco.mj_objectVelocity(model, data, SITE, site, twist[k], 0)
            if wrench[k].any():
                mujoco.mj_applyFT(model, data, wrench[k, :3], wrench[k, 3:], data.site_xpos[site], body, loads)
        twist = np.roll(twist, 3, axis=1)  # in MuJoCo the angular part comes first
        com = data.subtree_com[1].copy()
        R, p = data.site_xmat[self._sites].reshape(-1, 3, 3), data.site_xpos[self._sites]
        potential = self._weight * com[2]
        return EngineSample((force - loads)[self._qvel_index], com, R, p, twist, energy - potential, potential)

    def energy(self, x: np.ndarray, u: np.ndarray) -> float:
        """Return kinetic and potential energy of the links, J."""
        model, data = self._model, self._data
        data.qpos[self._qpos_index], data.qvel[self._qvel_index] = x, u
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_makeM(model, data)
        mujoco.mj_energyPos(model, data)
        mujoco.mj_energyVel(model, data)
        return float(data.energy.sum())

    def integrate(self, x: np.ndarray, u: np.ndarray, dt: float) -> np.ndarray:
        """Return the state after the velocity u has acted for dt (s)."""
        qpos, qvel = np.empty(self._model.nq), np.empty(self._model.nv)
        qpos[self._qpos_index], qvel[self._qvel_index] = x, u
        mujoco.mj_integratePos(self._model, qpos, qvel, dt)
        return np.asarray(qpos[self._qpos_index])

    @staticmethod
    def read_urdf(urdf: str) -> dict[str, JointDescription]:
        """Return all moving joints and the base; see ``Engine``. MuJoCo has no velocity limits.

        MuJoCo does not distinguish "no limit" from "from 0 to 0". The specification is read without compiling it,
        because compiling fuses and drops links.
        """
        found, owner = {BASE: JointDescription(np.zeros(10), np.zeros(3), np.zeros(3))}, {"world": BASE}
        poses = {"world": (np.eye(3), np.zeros(3))}
        spec = mujoco.MjSpec.from_string(urdf)  # must stay alive while its bodies are used
        for body in spec.bodies[1:]:
            R, p = poses[body.parent.name]
            poses[body.name] = R, p = R @ rotation_wxyz(body.quat), p + R @ body.pos
            owner[body.name] = owner[body.parent.name]
            for joint in body.joints:
                owner[body.name] = joint.name
                lower, upper = (np.nan, np.nan) if not joint.range.any() else joint.range
                torque = joint.actfrcrange[1] if joint.actfrcrange.any() else np.nan
                axis = R @ (joint.axis / np.linalg.norm(joint.axis))
                limits = (float(lower), float(upper), np.nan, float(torque))
                found[joint.name] = JointDescription(np.zeros(10), p, axis, *limits)
            if body.explicitinertial:
                xx, yy, zz, xy, xz, yz = body.fullinertia
                R_inertia = R @ rotation_wxyz(body.iquat)
                inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
                row = body_row(body.mass, np.zeros(3), inertia, R_inertia, p + R @ body.ipos)
                found[owner[body.name]].body[:] += row
        return found

    @staticmethod
    def shapes(record: RunRecord) -> EngineDistances:
        """Return the collision shapes of a run; see ``Engine``."""
        return MujocoDistances(record)


ENGINE = MujocoEngine
