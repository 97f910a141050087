"""Names of nodes of a drawing: what a file calls a thing leads to no other place, whatever it holds."""

from urllib.parse import quote, unquote

NAMED = "n:"
"""How the name of a node begins that is called as a thing of a file: no word that JavaScript knows has it."""


def node_name(name: str, kind: str = NAMED) -> str:
    """Return what the node of a thing is called: one step of a path, as ``/`` and the like are written ``%2F``.

    Parameters
    ----------
    kind : how it begins, where the node is one of several of its parent: ``patch``, ``frame``.
    """
    return kind + quote(name, safe=" ")


def thing_name(node: str) -> str:
    """Return the name of the thing that a node is called after, for people to read."""
    return unquote(node.removeprefix(NAMED))
