"""Kinds of files that the name or the first look at the content tells: plans and search trees."""

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mcplan.document.document import Document

TREE_SUFFIX = ".tree.json"
"""End of the name of a search tree, which lies beside its plan."""


def is_plan(document: "Document") -> bool:
    """Whether a document is a plan: every item of its ``stances`` has a posture."""
    data = document.data
    stances = data.get("stances") if isinstance(data, dict) else None
    return (
        bool(stances) and isinstance(stances, list) and all(isinstance(item, dict) and "q" in item for item in stances)
    )


def is_tree_file(path: str | os.PathLike[str]) -> bool:
    """Whether a name is that of a search tree."""
    return os.fspath(path).endswith(TREE_SUFFIX)
