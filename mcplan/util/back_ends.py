"""Physics back ends: metadata known without importing them.

To add one, write a class like `sim.physics.Physics` with ``of_world`` in a file or a folder of `sim/`, an entry here,
and its name in `PhysicsName`. This module is in the lowest layer: the command line needs it before other imports.
For every back end but ``qp`` the controller expects compliant contacts and sends torques with joint feedback.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, NamedTuple

PhysicsName = Literal["qp", "contact", "mujoco"]
"""Names of back ends in scenarios: the keys of `BACK_ENDS`."""


class BackEnd(NamedTuple):
    """A physics back end.

    made_by : class whose ``of_world`` makes the back end from a `record.world.World`, as ``module:name``.
    tolerances : tolerances of the certificates of its runs, as ``module:name``.
    seconds : clock time to simulate a plan of about 20 s and verify the run (s).
    package : additional package that it needs; empty if none.
    kernels : folders and files of `core` that only this back end uses.
    """

    made_by: str
    tolerances: str
    seconds: float
    package: str = ""
    kernels: tuple[str, ...] = ()


BACK_ENDS: Mapping[str, BackEnd] = {
    "qp": BackEnd("mcplan.sim.qp_physics:QpPhysics", "mcplan.certificate.tolerances:EXACT", 10.0),
    "contact": BackEnd(
        "mcplan.sim.contact.contact_physics:ContactPhysics", "mcplan.certificate.tolerances:PHYSICAL", 40.0,
        kernels=("contact", "rigid_body/forward_dynamics", "algebra/tree_factor"),
    ),
    "mujoco": BackEnd(
        "mcplan.sim.mujoco.physics:MujocoPhysics", "mcplan.certificate.tolerances:PHYSICAL", 20.0, package="mujoco",
        kernels=("contact/points",),
    ),
}  # fmt: skip


def load_object(path: str) -> Any:
    """Import the object ``module:name``."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
