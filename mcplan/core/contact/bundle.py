"""Inputs and outputs of a step of the contact physics, as the two bundles that are passed to the kernel."""

import numpy as np

from mcplan.core.bundle import Bundle, axes1, axes2, axes3, bundle, flat
from mcplan.core.contact.model import ContactPoints, ContactScene, ContactScratch, Exchange
from mcplan.core.distance.shape import Shapes
from mcplan.core.jit import jit_inline
from mcplan.core.rigid_body.tree import Tree


def pack_constants(tree: Tree, scene: ContactScene, law: np.ndarray) -> Bundle:
    """Return the bundle of the constants: mechanism, scene, and parameters of the contact law (LAW_SIZE,)."""
    return bundle([*tree, *flat(scene), law])[0]


def pack_variables(
    exchange: Exchange, scratch: ContactScratch, contacts: ContactPoints
) -> tuple[Bundle, Exchange, ContactPoints]:
    """Return the bundle of the arrays that steps change, and views of those that the caller reads and writes."""
    packed, views = bundle([*exchange, *scratch, *contacts])
    return packed, Exchange(*views[: len(exchange)]), ContactPoints(*views[-len(contacts) :])


@jit_inline
def unpack_constants(packed):
    """Unpack mechanism, scene and law."""
    real, integer, layout = packed
    tree = Tree(
        axes2(integer, layout, 0),  # topology
        axes2(real, layout, 1),  # joint
        axes2(real, layout, 2),  # inertia
        axes1(real, layout, 3),  # armature
    )
    return tree, unpack_scene(Bundle(real, integer, layout[4:])), axes1(real, layout, 27)


@jit_inline
def unpack_variables(packed):
    """Unpack exchange, scratch space and table of contacts."""
    real, integer, layout = packed
    exchange = Exchange(
        axes2(real, layout, 0),  # grasp
        axes1(real, layout, 1),  # tau
        axes1(real, layout, 2),  # force
        axes2(real, layout, 3),  # object_q
        axes2(real, layout, 4),  # object_v
        axes1(real, layout, 5),  # vd
        axes2(real, layout, 6),  # wrench
        axes1(real, layout, 7),  # tau_ext
        axes1(integer, layout, 8),  # counts
        axes2(real, layout, 9),  # work
        axes1(integer, layout, 10),  # active
    )
    return (
        exchange,
        unpack_scratch(Bundle(real, integer, layout[11:])),
        unpack_contacts(Bundle(real, integer, layout[32:])),
    )


@jit_inline
def unpack_scene(packed):
    """Unpack the scene at the beginning of a bundle."""
    real, integer, layout = packed
    return ContactScene(
        axes2(integer, layout, 0),  # surface_index
        axes2(real, layout, 1),  # surface
        axes2(real, layout, 2),  # bar
        axes2(real, layout, 3),  # friction
        axes2(integer, layout, 4),  # patch_index
        axes2(real, layout, 5),  # patch
        axes2(real, layout, 6),  # corners
        axes2(integer, layout, 7),  # bump_index
        axes2(real, layout, 8),  # bump
        axes2(integer, layout, 9),  # body_index
        axes2(real, layout, 10),  # body
        axes2(integer, layout, 11),  # chain
        axes2(real, layout, 12),  # joint
        axes1(integer, layout, 13),  # parent
        Shapes(
            axes2(integer, layout, 14),
            axes2(real, layout, 15),
            axes2(real, layout, 16),
            axes2(real, layout, 17),
            axes1(integer, layout, 18),
        ),  # shapes
        axes1(integer, layout, 19),  # shape_link
        axes2(integer, layout, 20),  # pair
        axes1(real, layout, 21),  # pair_friction
        axes2(integer, layout, 22),  # on_link
    )


@jit_inline
def unpack_scratch(packed):
    """Unpack the scratch space at the beginning of a bundle."""
    real, integer, layout = packed
    return ContactScratch(
        axes2(real, layout, 0),  # M
        axes2(real, layout, 1),  # H
        axes2(real, layout, 2),  # vector
        axes1(integer, layout, 3),  # root
        axes2(real, layout, 4),  # pose
        axes2(real, layout, 5),  # surface
        axes2(real, layout, 6),  # frame
        axes3(real, layout, 7),  # clip
        axes1(real, layout, 8),  # speed
        axes2(real, layout, 9),  # G
        axes2(real, layout, 10),  # shape
        axes2(real, layout, 11),  # distance
        axes1(real, layout, 12),  # nearest
        axes1(real, layout, 13),  # pair_clearance
        axes1(real, layout, 14),  # travel
        axes1(real, layout, 15),  # min_clearance
        axes2(real, layout, 16),  # support_clearance
        axes1(real, layout, 17),  # last_q
        axes2(real, layout, 18),  # last_object_q
        axes1(real, layout, 19),  # radius
        axes1(real, layout, 20),  # world_clearance
    )


@jit_inline
def unpack_contacts(packed):
    """Unpack the table of contacts at the beginning of a bundle."""
    real, integer, layout = packed
    return ContactPoints(
        axes2(integer, layout, 0),  # index
        axes2(real, layout, 1),  # value
        axes2(integer, layout, 2),  # columns
        axes3(real, layout, 3),  # J
        axes2(real, layout, 4),  # target
        axes2(real, layout, 5),  # impulse
        axes2(real, layout, 6),  # speed
        axes2(real, layout, 7),  # speed_slope
        axes2(real, layout, 8),  # shift
        axes2(integer, layout, 9),  # memory_index
        axes2(real, layout, 10),  # memory
        axes2(integer, layout, 11),  # report_index
        axes2(real, layout, 12),  # report
        axes1(integer, layout, 13),  # overflow
    )
