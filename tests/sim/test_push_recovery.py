import numpy as np
import pytest

from tests.sim.push_recovery import drawn, pushed, standing


@pytest.mark.slow
def test_a_light_push_is_recovered_from_and_a_heavy_one_is_not():
    plan = standing()
    light, heavy = (replace_force(drawn(3), size) for size in (20.0, 900.0))
    stood, fell = (pushed(plan, push, "contact", 3) for push in (light, heavy))
    assert stood["stopped"] is None
    assert stood["left"] < 0.02
    assert fell["stopped"] is not None
    assert fell["finite"]


def replace_force(push, size):
    """The same push with another force (N)."""
    force = np.array(push.force)
    return push.model_copy(update={"force": tuple(size * force / np.linalg.norm(force))})
