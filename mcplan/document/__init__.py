"""YAML files that a person writes: read with line numbers, checked all at once, changed by overrides, written back."""

from mcplan.document.document import Document, read_document
from mcplan.document.dump import comment, dump_document, inline

__all__ = ["Document", "comment", "dump_document", "inline", "read_document"]
