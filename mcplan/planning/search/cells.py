"""Cells: places and contacts so near to each other that the search takes them for the same."""

from mcplan.scene.contact import Contact

CELL, TURN = 0.05, 0.1
"""m, rad: stances whose contacts round to the same are the same to the search."""


def cell_of(contact: Contact, hit: bool, size: float = 1.0) -> tuple:
    """Return the cell of a contact; ``hit``: whether it is the goal's."""
    return place_cell(contact.patch, {"surface": contact.support, **contact.coordinates}, hit, size)


def place_cell(patch: str, spec: dict, hit: bool, size: float = 1.0) -> tuple:
    """Return the cell of a place; contacts of the goal have one of their own, whatever is near."""
    width = size * CELL
    if "along" in spec:
        cell = (round(float(spec["along"]) / width), 0, 0)
    else:
        cell = (
            round(float(spec["x"]) / width), round(float(spec["y"]) / width), round(float(spec.get("yaw", 0.0)) / TURN)
        )  # fmt: skip
    return (patch, spec["surface"], hit, *cell)
