"""What contacts are like, as the kernels take it."""

import numpy as np

from mcplan.core.contact.model import (
    BOUNCE_SPEED,
    COMPLIANCE,
    DAMP,
    LAW_SIZE,
    RECOVERY,
    RECOVERY_SPEED,
    RESTITUTION,
    SOFT,
    STIFF,
)
from mcplan.model.solid import frozen
from mcplan.scene.settings import ContactLaw


def law_array(settings: ContactLaw) -> np.ndarray:
    """Return the numbers (LAW_SIZE,) of a contact law, read-only."""
    law = np.zeros(LAW_SIZE)
    law[[COMPLIANCE, RECOVERY, RECOVERY_SPEED]] = settings.compliance, settings.recovery, settings.recovery_speed
    law[[RESTITUTION, BOUNCE_SPEED]] = settings.restitution, settings.bounce_speed
    law[[SOFT, STIFF, DAMP]] = float(settings.soft), settings.stiffness, settings.damping
    return frozen(law)
