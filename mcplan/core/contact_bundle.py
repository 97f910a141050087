"""The scene, the scratch space and the table of contacts, each out of the one bundle that crosses to the kernel."""

from mcplan.core.bundle import Bundle, bundle, flat, real1, real2, real3, whole1, whole2
from mcplan.core.contact_model import Scene, Scratch, Touch
from mcplan.core.distance_shape import Shapes
from mcplan.core.jit import jit_inline


def close_scene(scene: Scene) -> Bundle:
    """Return the bundle of a scene."""
    return bundle(flat(scene))[0]


def close_scratch(scratch: Scratch) -> Bundle:
    """Return the bundle of a scratch space."""
    return bundle(flat(scratch))[0]


def close_touch(touch: Touch) -> tuple[Bundle, Touch]:
    """Return the bundle of a table of contacts, and the table as it is there."""
    packed, views = bundle(flat(touch))
    return packed, Touch(*views)


@jit_inline
def open_scene(packed):
    """Return the scene out of its bundle."""
    return Scene(
        whole2(packed, 0),  # surface_index
        real2(packed, 1),  # surface
        real2(packed, 2),  # bar
        real2(packed, 3),  # friction
        whole2(packed, 4),  # patch_index
        real2(packed, 5),  # patch
        real2(packed, 6),  # corners
        whole2(packed, 7),  # bump_index
        real2(packed, 8),  # bump
        whole2(packed, 9),  # body_index
        real2(packed, 10),  # body
        whole2(packed, 11),  # chain
        real2(packed, 12),  # joint
        whole1(packed, 13),  # parent
        Shapes(whole2(packed, 14), real2(packed, 15), real2(packed, 16), real2(packed, 17)),  # shapes
        whole1(packed, 18),  # shape_link
        whole2(packed, 19),  # pair
        real1(packed, 20),  # pair_friction
    )


@jit_inline
def open_scratch(packed):
    """Return the scratch space out of its bundle."""
    return Scratch(
        real2(packed, 0),  # M
        real2(packed, 1),  # H
        real2(packed, 2),  # vector
        real2(packed, 3),  # robot_M
        whole1(packed, 4),  # dense
        real2(packed, 5),  # pose
        real2(packed, 6),  # surface
        real2(packed, 7),  # frame
        real3(packed, 8),  # clip
        real1(packed, 9),  # speed
        real2(packed, 10),  # G
        real2(packed, 11),  # shape
        real2(packed, 12),  # distance
        real1(packed, 13),  # nearest
        real1(packed, 14),  # apart
        real1(packed, 15),  # way
        real1(packed, 16),  # quiet
        real2(packed, 17),  # clear
        real1(packed, 18),  # left_q
        real2(packed, 19),  # left_object_q
    )


@jit_inline
def open_touch(packed):
    """Return the table of contacts out of its bundle."""
    return Touch(
        whole2(packed, 0),  # index
        real2(packed, 1),  # value
        whole2(packed, 2),  # where
        real3(packed, 3),  # J
        real2(packed, 4),  # aim
        real2(packed, 5),  # impulse
        real2(packed, 6),  # speed
        real2(packed, 7),  # climb
        real1(packed, 8),  # shift
        whole2(packed, 9),  # memory_index
        real2(packed, 10),  # memory
        whole2(packed, 11),  # report_index
        real2(packed, 12),  # report
    )
