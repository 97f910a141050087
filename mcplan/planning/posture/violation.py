"""One requirement that a posture misses, by its kind, what it concerns and how much is missing."""

from dataclasses import dataclass

from mcplan.amounts import angle, length, length_or_angle


@dataclass(frozen=True)
class Violation:
    """A requirement that is missed.

    Attributes
    ----------
    kind : one of the table.
    thing : the patch, the joint, the pair of links, or ``com``.
    amount : in the unit of the table.

    ===========  =========================  ============================================================
    kind         thing                      amount
    ===========  =========================  ============================================================
    reach        patch                      m, rad: how far it stays from its contact
    joint limit  joint that turns           rad: how far beyond its limit it would have to go
    slide limit  joint that slides          m: the same
    equilibrium  ``com``                    m: how far the centre of mass stays outside its support region
    friction     patches that carry load    N: force that is missing for any equilibrium, friction being what ends it
    load         patches that carry load    N: the same where friction would not help
    torque       joint                      share of its limit that it needs, beyond the share allowed
    collision    ``link and link``          m: how far beyond the allowed distance they come
    com          ``com``                    m: how far the centre of mass stays from where it was asked for
    base         ``place`` or               m or rad: how far the base stays outside the tolerance
                 ``orientation``
    clearance    patch                      m: how far a lifted patch comes too close to what it left
    way          joint or ``the base``      rad or m: how far from the posture the way on held contacts ends
    passage      ``link and link``          m: how far beyond the allowed distance they come on the way, at best
    passage      patch                      m, rad: by how much contacts or joint limits are missed on its way, at best
    ===========  =========================  ============================================================
    """

    kind: str
    thing: str
    amount: float

    @property
    def of_two(self) -> bool:
        """Whether it is about two bodies."""
        return " and " in self.thing

    def __str__(self) -> str:
        words = {
            "reach": f"{self.thing} stays {length_or_angle(self.amount)} away from its contact",
            "joint limit": f"{self.thing} would have to go {angle(self.amount)} beyond its limit",
            "slide limit": f"{self.thing} would have to slide {length(self.amount)} beyond its limit",
            "equilibrium": f"the centre of mass stays {length(self.amount)} outside its support region",
            "friction": f"{self.thing} slip: {self.amount:.0f} N are missing for balance",
            "load": f"{self.thing} cannot carry the robot: {self.amount:.0f} N are missing for balance",
            "torque": f"{self.thing} needs {self.amount:.0%} of its torque limit more than allowed",
            "collision": f"{self.thing} come {length(self.amount)} too close",
            "com": f"the centre of mass stays {length(self.amount)} away from its target",
            "base": f"the base stays {(length if self.thing == 'place' else angle)(self.amount)} outside the tolerance "
            f"of its {self.thing}",
            "clearance": f"{self.thing}, in the air, comes {length(self.amount)} too close to a surface or its "
            "neighbour",
            "passage": f"on the way there {self.thing} come {length(self.amount)} too close"
            if self.of_two
            else f"on the way of {self.thing} contacts or joint limits are missed by {length(self.amount)}",
            "way": f"on the held contacts {self.thing} stays {length_or_angle(self.amount)} away from the posture",
        }
        return words[self.kind]
