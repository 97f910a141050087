"""What a posture must keep, and how hard it is searched for."""

from dataclasses import dataclass, field, replace

import numpy as np

from mcplan.robot.anatomy import RobotScale
from mcplan.scene.contact import Contact
from mcplan.settings.settings import ControlSettings

FRICTION_SHARE = 0.9
"""Part of the friction that a planned posture may use; its margins are still taken with all of it.

The rest pays for motion: a tenth of the friction is 0.06 g of horizontal acceleration at 0.6. More would refuse stances
that robots do take: in a valley of 35 degrees with a friction of 0.6 one foot and the opposite hand need 0.51.
"""

FACES = 8
"""Of the pyramids of friction in which the forces of postures are."""

FORCE_SHARE = 0.9
"""Part of the largest force and moment of a contact that a planned posture may use."""

TORQUE_SHARE = 0.9
"""Part of the torque limits that a planned posture may use."""


@dataclass(frozen=True)
class Weights:
    """Cost of the distance to the guide posture, per squared m or rad.

    The base finds its own place between the contacts; the trunk stays upright; the centre of mass is drawn to ``com``,
    and hardly leaves the comfortable part of its region: at the edge a contact bears nothing, and lifts off.
    """

    base_position: float = 2.0
    base_orientation: float = 5.0
    joints: float = 1.0
    com: float = 20.0
    comfort: float = 400.0


@dataclass(frozen=True)
class PostureSettings:
    """Options of the posture generator; every one has a default, for a robot of the size of HRP-2.

    Attributes
    ----------
    joint_margin : distance to the joint limits (rad or m), of a joint half of its range at most.
    bent : how far limbs that touch are bent (rad), 0 for any: a straight one has nothing to make up for errors with.
    com_inset : how far inside its support region the centre of mass is (m); less where the region is thin.
    comfort : how far inside it is drawn to, without having to (m).
    friction_share, force_share, torque_share : part of the friction of contacts, of their largest force and moment, and
        of the torque limits that may be used.
    pressure_inset : how far inside a patch's edges its forces act (m), as where the controller counts on them.
    clearance : least distance between links, and to the environment (m).
    steps : steps of the inverse kinematics per stage, at most.
    collision_rounds : times that distances are taken anew while a collision is resolved.
    torque_rounds : steps towards a posture nearby that needs less torque, where one holds but for that.
    weights : cost of the distance to the guide.
    """

    joint_margin: float = 0.02
    bent: float = 0.0
    com_inset: float = 0.02
    comfort: float = 0.05
    friction_share: float = FRICTION_SHARE
    force_share: float = FORCE_SHARE
    torque_share: float = TORQUE_SHARE
    pressure_inset: float = 0.005
    clearance: float = 0.003
    steps: int = 30
    collision_rounds: int = 12
    torque_rounds: int = 5
    weights: Weights = field(default_factory=Weights)

    def of(self, scale: RobotScale) -> "PostureSettings":
        """Return the same for a robot of another size: lengths grow with it, prices of squared lengths sink."""
        w, price = self.weights, 1.0 / scale.leg**2
        return replace(
            self,
            com_inset=scale.sole * self.com_inset,
            comfort=scale.sole * self.comfort,
            pressure_inset=scale.sole * self.pressure_inset,
            clearance=scale.leg * self.clearance,
            weights=replace(w, base_position=price * w.base_position, com=price * w.com, comfort=price * w.comfort),
        )

    def with_margin(self, contact: Contact, share: float = 1.0) -> Contact:
        """Return a contact with what of it may be used, or a share of that."""
        return contact.with_margin(share * self.friction_share, share * self.force_share)

    def within(self, control: ControlSettings) -> "PostureSettings":
        """Return the same with no more of contacts than a controller counts on, which is to hold the postures.

        Of the friction it counts on the pyramid of ``friction_faces`` faces inscribed in the cone of a part
        ``friction_fraction`` of it. That of a posture lies within where its extent along these faces' normals does:

            share <= friction_fraction cos(pi / friction_faces) / extent

        with an extent of cos(pi / 8) where the normals are among those of its own faces, else of 1 at most. Its forces
        act no nearer to the edges of a patch than ``pressure_margin``; of largest forces and moments it counts on
        ``force_fraction``.
        """
        extent = np.cos(np.pi / FACES) if FACES % control.friction_faces == 0 else 1.0
        held = control.friction_fraction * np.cos(np.pi / control.friction_faces) / extent
        return replace(
            self,
            friction_share=min(self.friction_share, float(held)),
            force_share=min(self.force_share, control.force_fraction),
            pressure_inset=max(self.pressure_inset, control.pressure_margin),
        )
