"""YAML builder: from text to plain values with their lines, within limits on depth, aliases and expanded size.

It uses PyYAML's event stream instead of its node tree: events have line numbers and need no recursion, and a file whose
aliases expand to a huge value is an error before it is expanded (files may be hostile). Plain scalars follow the core
schema of YAML 1.2: ``1e3`` is a number, ``on`` and ``yes`` are text.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import yaml

_INTEGER_PATTERN = re.compile(r"[-+]?[0-9]+")
_OCTAL_PATTERN = re.compile(r"0o[0-7]+")
_HEX_PATTERN = re.compile(r"0x[0-9a-fA-F]+")
_FLOAT_PATTERN = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE_PATTERN = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}

_MAX_INTEGER_DIGITS = 300  # digits; longer integers exceed a double
_MAX_INTEGER = 2**1023  # the largest power of two that is a double


def plain_scalar(text: str) -> str | int | float | bool | None:
    """Return the value of an unquoted scalar.

    ``.inf`` and ``.nan`` become floats, and numbers beyond the range of a double infinite floats. The caller decides
    whether these are allowed.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INTEGER_PATTERN.fullmatch(text):
        return int(text) if len(text) <= _MAX_INTEGER_DIGITS else float(text)
    if _FLOAT_PATTERN.fullmatch(text):
        return float(text)
    if _HEX_PATTERN.fullmatch(text) or _OCTAL_PATTERN.fullmatch(text):
        value = int(text, 0) if len(text) <= _MAX_INTEGER_DIGITS else _MAX_INTEGER
        return value if value < _MAX_INTEGER else float("inf")
    if _NOT_FINITE_PATTERN.fullmatch(text):
        return float(text.replace(".", ""))
    return text


MAX_DEPTH = 32
MAX_ALIASES = 200
MAX_VALUES = 1_000_000
"""Maximum depth of nested collections, number of aliases, and number of values with aliases expanded."""

CHARACTERS_PER_VALUE = 32
"""Number of characters of a text that count as one value, because aliases also multiply text."""
COUNT_NOTE = f" ({CHARACTERS_PER_VALUE} characters of a text count as one)"

PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""Parser of YAML: ten times as fast where PyYAML has libyaml."""

_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}


class YamlError(Exception):
    """Unrecoverable YAML error: line, counted from 1, or None, and message."""

    def __init__(self, line: int | None, message: str):
        super().__init__(message)
        self.line = line
        self.message = message


@dataclass
class Mark:
    """Position of a value in the file: its line (None for an override), and the marks of its children.

    ``index`` is the index of an item in the file's list if it differs, because groups expand to several items.
    """

    line: int | None
    children: dict[str, "Mark"] | list["Mark"] | None = None
    index: int | None = None

    def child(self, step: str | int) -> "Mark":
        """Return the mark of a child; if it has none, a mark with the line of this value."""
        try:
            return self.children[step]  # type: ignore[index, call-overload]
        except (KeyError, IndexError, TypeError):
            return Mark(self.line)


@dataclass
class _OpenCollection:
    """A mapping or sequence that is being read, with its size and depth so far, and its current key."""

    value: dict[str, Any] | list[Any]
    mark: Mark
    anchor: str | None
    size: int = 1
    depth: int = 1
    key: str | None = None
    key_line: int = 0
    is_repeated_key: bool = False


class Builder:
    """Builder of one YAML text.

    Attributes
    ----------
    data : the value.
    mark : its lines.
    problems : key path, line and message of each recoverable problem.
    """

    def __init__(self, text: str):
        self.data: Any = None
        self.mark = Mark(1)
        self.problems: list[tuple[tuple[str | int, ...], int, str]] = []
        self._stack: list[_OpenCollection] = []
        self._anchors: dict[str, tuple[Any, Mark, int, int]] = {}
        self._aliases = 0
        self._documents = 0
        for event in self._events(text):
            self._handle(event)

    @staticmethod
    def _events(text: str) -> Iterator[Any]:
        try:
            yield from yaml.parse(text, Loader=PARSER)
        except yaml.MarkedYAMLError as error:
            mark, start = error.problem_mark or error.context_mark, error.context_mark
            line = min(mark.line + 1, max(1, len(text.splitlines()))) if mark else None
            position_text = f" (begun in line {start.line + 1})" if start and start.line + 1 != line else ""
            parts = [part for part in (f"{error.context or ''}{position_text}", error.problem) if part]
            raise YamlError(line, "not valid YAML: " + ", ".join(parts)) from None
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1 if isinstance(error.position, int) else None
            raise YamlError(line, f"not valid YAML: {error.reason}") from None

    def _handle(self, event: Any) -> None:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise YamlError(line, "a second document starts here; a file holds one")
        elif isinstance(event, yaml.AliasEvent):
            self._aliases += 1
            if self._aliases > MAX_ALIASES:
                raise YamlError(line, f"more than {MAX_ALIASES} aliases (*name)")
            if event.anchor not in self._anchors:
                raise YamlError(line, f"alias *{event.anchor} stands for nothing before it")
            value, mark, size, depth = self._anchors[event.anchor]
            if len(self._stack) + depth > MAX_DEPTH:
                raise YamlError(line, f"nested deeper than {MAX_DEPTH} levels once *{event.anchor} is expanded")
            self._add_value(value, Mark(line, mark.children), size, depth)
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            self._check_tag(event.tag, line)
            if len(self._stack) >= MAX_DEPTH:
                raise YamlError(line, f"nested deeper than {MAX_DEPTH} levels")
            if self._expects_key():
                raise YamlError(line, "a key must be a word, not a list or a mapping")
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            self._stack.append(
                _OpenCollection({} if is_mapping else [], Mark(line, {} if is_mapping else []), event.anchor)
            )
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            collection = self._stack.pop()
            if collection.anchor:
                self._anchors[collection.anchor] = (
                    collection.value,
                    collection.mark,
                    collection.size,
                    collection.depth,
                )
            self._add_value(collection.value, collection.mark, collection.size, collection.depth)

    def _scalar(self, event: Any, line: int) -> None:
        self._check_tag(event.tag, line)
        if self._expects_key():
            top = self._stack[-1]
            top.key, top.key_line = event.value, line
            top.size += len(event.value) // CHARACTERS_PER_VALUE
            top.is_repeated_key = event.value in top.value
            if top.is_repeated_key:
                first_line = top.mark.children[event.value].line  # type: ignore[index, call-overload, union-attr]
                self.problems.append(
                    ((*self._path(), event.value), line, f"key given twice, first in line {first_line}")
                )
            return
        is_plain = (event.implicit[0] and event.tag is None) or (event.tag or "").endswith((":int", ":float", ":bool"))
        value = plain_scalar(event.value) if is_plain else event.value
        if isinstance(value, float) and not math.isfinite(value):
            self.problems.append((self._path(True), line, f"{event.value} is not a finite number"))
        size = 1 + len(event.value) // CHARACTERS_PER_VALUE
        if event.anchor:
            self._anchors[event.anchor] = (value, Mark(line), size, 0)
        self._add_value(value, Mark(line), size, 0)

    @staticmethod
    def _check_tag(tag: str | None, line: int) -> None:
        if tag is not None and tag != "!" and tag not in _TAGS:
            raise YamlError(line, f"tag {tag} is not allowed here")

    def _expects_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1].value, dict) and self._stack[-1].key is None

    def _path(self, is_value: bool = False) -> tuple[str | int, ...]:
        """Return the key path of the collection on top of the stack, or of its next value (``is_value``)."""
        steps: list[str | int] = []
        for entry in self._stack if is_value else self._stack[:-1]:
            steps.append(len(entry.value) if isinstance(entry.value, list) else entry.key or "")
        return tuple(steps)

    def _add_value(self, value: Any, mark: Mark, size: int, depth: int) -> None:
        if not self._stack:
            self.data, self.mark = value, mark
            return
        top = self._stack[-1]
        top.size += size
        top.depth = max(top.depth, 1 + depth)
        if top.size > MAX_VALUES:
            raise YamlError(mark.line, f"more than {MAX_VALUES} values once its aliases are expanded{COUNT_NOTE}")
        if isinstance(top.value, list):
            top.value.append(value)
            top.mark.children.append(mark)  # type: ignore[union-attr]
        elif top.key is None:
            raise YamlError(mark.line, "a key must be a word, not an alias")
        else:
            if not top.is_repeated_key:
                top.value[top.key] = value
                top.mark.children[top.key] = Mark(top.key_line, mark.children)  # type: ignore[index, call-overload]
            top.key = None


class PlainValueError(ValueError):
    """A value cannot be written to YAML; ``key`` is its key path, ``message`` the reason."""

    def __init__(self, key: tuple[str | int, ...], message: str):
        super().__init__(message)
        self.key, self.message = key, message


def plain_value(value: Any, key: tuple[str | int, ...] = ()) -> Any:
    """Return a value with its tuples, arrays and NumPy numbers converted to plain lists and numbers.

    Parameters
    ----------
    key : key path of the value, for messages.

    Raises
    ------
    PlainValueError
        A number is not finite, a key is not text, or a type is not supported.
    """
    if isinstance(value, Mapping):
        for name in value:
            if not isinstance(name, str):
                raise PlainValueError(key, f"key {name!r} is not text")
        return {name: plain_value(item, (*key, name)) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_value(item, (*key, k)) for k, item in enumerate(value)]
    if isinstance(value, np.ndarray):
        return plain_value(value.tolist(), key)
    if isinstance(value, np.generic):
        return plain_value(value.item(), key)
    if isinstance(value, float) and not math.isfinite(value):
        raise PlainValueError(key, f"{value} is not a finite number")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    raise PlainValueError(key, f"{value!r} cannot stand in a YAML file")
