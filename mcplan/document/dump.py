"""Write plain values as YAML that a person can edit and that reads back as the same values, bit for bit."""

import re
import sys
from collections.abc import Iterator
from typing import Any

from mcplan.document.plain import plain_value
from mcplan.document.scalar import plain_scalar

WIDTH = 120

_BARE = re.compile(r"[A-Za-z_./][A-Za-z0-9_./+-]*( [A-Za-z0-9_./+-]+)*")
# Words that readers of YAML 1.1 take for booleans are quoted for their sake.
_OLD_WORDS = {"y", "n", "yes", "no", "on", "off"}

_UNUSUAL = re.compile(r"[^ !#-\[\]-~]")
"""What stands for itself between quotation marks is the rest of ASCII: motions are long texts of that."""

_NAMED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def dump_document(data: Any) -> str:
    """Return ``data`` as YAML text.

    Floats are written with the shortest digits that give the same double. What fits in one line is written inline;
    longer lists of numbers are broken at the line width.

    Raises
    ------
    ValueError
        For values that have no place in a file: numbers that are not finite, keys that are not text, other types.
    """
    data = plain_value(data)
    if isinstance(data, dict) and data:
        return "\n".join(_mapping(data, 0)) + "\n"
    return "\n".join(_value(data, 0, 0)) + "\n"


def inline(value: Any) -> str:
    """Return a value as YAML in one line, which may also stand within brackets: ``"UR5: left"``, ``[a, 0.5]``."""
    return _flow(plain_value(value))


def comment(text: str) -> str:
    """Return a text as it may stand in a comment: in one line, without what cannot be printed."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())


def _mapping(data: dict[str, Any], indent: int) -> Iterator[str]:
    for key, value in data.items():
        name = f"{' ' * indent}{_text(key)}:"
        first, *rest = _value(value, indent + 2, len(name) + 1, inline=indent > 0 or not isinstance(value, dict))
        if first.startswith(" "):
            yield name
            yield first
        else:
            yield f"{name} {first}"
        yield from rest


def _value(value: Any, indent: int, column: int, inline: bool = True) -> list[str]:
    """Return the lines of a value: the first without indentation if it may follow its key, else all indented."""
    if not isinstance(value, (dict, list)) or not value:
        return [_flow(value)]
    if inline and _flat(value) and (flow := _flow_within(value, WIDTH - column)):
        return [flow]
    if isinstance(value, dict):
        return list(_mapping(value, indent)) if indent else list(_mapping(value, 0))
    if any(isinstance(item, (dict, list)) for item in value):
        return [line for item in value for line in _item(item, indent)]
    return _wrapped(value, indent, column)


def _item(item: Any, indent: int) -> list[str]:
    first, *rest = _value(item, indent + 2, indent + 2)
    return [f"{' ' * indent}- {first.lstrip(' ')}", *rest]


def _wrapped(items: list[Any], indent: int, column: int) -> list[str]:
    lines: list[str] = []
    line = "["
    for number, item in enumerate(items):
        word = _flow(item) + ("," if number < len(items) - 1 else "]")
        start = column if not lines else indent
        if start + len(line) + 1 + len(word) > WIDTH and line.strip(" ["):
            lines.append(line)
            line = " " * indent + word
        else:
            line += word if line == "[" else f" {word}"
    return [*lines, line]


def _flat(value: Any) -> bool:
    """Whether a collection reads well in one line: lists in it hold no mappings."""
    if isinstance(value, dict):
        return all(not isinstance(item, list) or _flat(item) for item in value.values())
    return not any(isinstance(item, dict) for item in value)


def _flow(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _flow_within(value, sys.maxsize)
    if isinstance(value, str):
        return _text(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def _flow_within(value: dict[str, Any] | list[Any], room: int) -> str:
    """Return a collection in one line, or nothing if that takes more letters: known before all of it is written."""
    named = isinstance(value, dict)
    words, left = [], room
    for key, item in value.items() if isinstance(value, dict) else (("", item) for item in value):
        name = f"{_text(key)}: " if named else ""
        left -= len(name) + len(", ")
        word = _flow_within(item, left) if isinstance(item, (dict, list)) else _flow(item)
        left -= len(word)
        if left < 0 or not word:
            return ""
        words.append(name + word)
    text = ", ".join(words)
    return f"{{{text}}}" if named else f"[{text}]"


def _text(text: str) -> str:
    plain = _BARE.fullmatch(text) and plain_scalar(text) == text and text.lower() not in _OLD_WORDS
    return text if plain else _quoted(text)


def _quoted(text: str) -> str:
    return f'"{_UNUSUAL.sub(_escaped, text)}"'


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    code = ord(letter)
    if letter in _NAMED:
        return _NAMED[letter]
    if letter.isprintable():
        return letter
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
