"""YAML files that a person writes: read with line numbers, checked all at once, changed by overrides, written back."""

from mcplan.document.document import Document, read_document
from mcplan.document.dump import dump_document

__all__ = ["Document", "dump_document", "read_document"]
