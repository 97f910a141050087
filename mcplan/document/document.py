"""YAML documents: plain values with line numbers, overrides, validation, and a writer that preserves precision."""

import copy
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import pydantic

from mcplan.document.build import Builder, Mark, PlainValueError, YamlError, plain_scalar, plain_value
from mcplan.document.messages import explain, find_intended_key
from mcplan.errors import InputError, Problem

LINE_WIDTH = 120
"""Width of lines in written files."""

_PLAIN_TEXT = re.compile(r"[A-Za-z_./][A-Za-z0-9_./+-]*( [A-Za-z0-9_./+-]+)*")
# written with quotation marks, because parsers of YAML 1.1 read these words as booleans
_YAML_1_1_BOOLEANS = {"y", "n", "yes", "no", "on", "off"}

_ESCAPED_CHARACTERS = re.compile(r"[^ !#-\[\]-~]")
"""Characters that need an escape in quoted text; the long texts of motions have none."""

_SHORT_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def dump_document(data: Any) -> str:
    """Return ``data`` as YAML text.

    Floats are written with the shortest digits that give the same double. Collections that fit in one line are inline;
    longer lists of numbers are broken at the line width.

    Raises
    ------
    ValueError
        A number is not finite, a key is not text, or a type is not supported.
    """
    data = plain_value(data)
    if isinstance(data, dict) and data:
        return "\n".join(_mapping(data, 0)) + "\n"
    return "\n".join(_value(data, 0, 0)) + "\n"


def inline(value: Any) -> str:
    """Return a value as YAML in one line, valid also within brackets: ``"UR5: left"``, ``[a, 0.5]``."""
    return _flow(plain_value(value))


def comment(text: str) -> str:
    """Return a text for a comment: in one line, without characters that cannot be printed."""
    return "".join(character for character in " ".join(text.split()) if character.isprintable())


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
    """Return the lines of a value.

    The first line is not indented if it may follow its key, at the given column; otherwise all are indented.
    """
    if not isinstance(value, (dict, list)) or not value:
        return [_flow(value)]
    if inline and _is_flat(value) and (flow := _flow_within(value, LINE_WIDTH - column)):
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
        indentation = column if not lines else indent
        if indentation + len(line) + 1 + len(word) > LINE_WIDTH and line.strip(" ["):
            lines.append(line)
            line = " " * indent + word
        else:
            line += word if line == "[" else f" {word}"
    return [*lines, line]


def _is_flat(value: Any) -> bool:
    """Return whether a collection is legible in one line: it has no list of mappings."""
    if isinstance(value, dict):
        return all(not isinstance(item, list) or _is_flat(item) for item in value.values())
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


def _flow_within(value: dict[str, Any] | list[Any], width: int) -> str:
    """Return a collection in one line, or an empty text as soon as it exceeds ``width``."""
    is_mapping = isinstance(value, dict)
    words, remaining = [], width
    for key, item in value.items() if isinstance(value, dict) else (("", item) for item in value):
        name = f"{_text(key)}: " if is_mapping else ""
        remaining -= len(name) + len(", ")
        word = _flow_within(item, remaining) if isinstance(item, (dict, list)) else _flow(item)
        remaining -= len(word)
        if remaining < 0 or not word:
            return ""
        words.append(name + word)
    text = ", ".join(words)
    return f"{{{text}}}" if is_mapping else f"[{text}]"


def _text(text: str) -> str:
    plain = _PLAIN_TEXT.fullmatch(text) and plain_scalar(text) == text and text.lower() not in _YAML_1_1_BOOLEANS
    return text if plain else _quoted(text)


def _quoted(text: str) -> str:
    return f'"{_ESCAPED_CHARACTERS.sub(_escaped, text)}"'


def _escaped(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    if character.isprintable():
        return character
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


MAX_BYTES = 16_000_000
"""Maximum size of a file."""

TEXT_KEYS = ("name", "description", "robot", "environment.mesh")
"""Keys whose overrides are not parsed as YAML; otherwise a path with `` #`` or ``: `` would need quotation marks."""

VALUES_PATH = "scenario"
"""``path`` of a document of Python values, which has no file."""

Key = tuple[str | int, ...]
Model = TypeVar("Model", bound=pydantic.BaseModel)

_PATH_STEP = re.compile(r"(?:^|\.)([^.\[\]]+)|\[([^\[\]]+)\]")


class Document:
    """The content of one file.

    Attributes
    ----------
    path : path of the file as the user gave it.
    data : plain dicts, lists, text, numbers, booleans and None. Do not modify them: aliased parts are shared.
    problems : recoverable problems of the file (a key given twice, a number that is not finite). ``validate`` reports
        them together with those that it finds.
    mark : lines of the values in the file.
    """

    def __init__(self, path: str, data: Any, mark: Mark, problems: Sequence[Problem] = (), source: str | None = None):
        self.path = path
        self.data = data
        self.problems = tuple(problems)
        self.mark = mark
        self._source = source

    @classmethod
    def of_values(cls, values: Mapping[str, Any], error: type[InputError] = InputError) -> "Document":
        """Return a document of Python values; paths in them are relative to the working directory."""
        try:
            return cls(VALUES_PATH, plain_value(values), Mark(None))
        except PlainValueError as reason:
            raise error(Problem(VALUES_PATH, None, key_text(reason.key), reason.message)) from None

    def text(self) -> str:
        """Return the text of the file, or, after overrides, the values as YAML without the comments of the file."""
        return dump_document(self.data) if self._source is None else self._source

    def line(self, key_path: Key) -> int | None:
        """Return the line of a value, or of the nearest parent that is in the file; None for an override."""
        return self._locate(key_path)[0]

    def problem(self, key_path: Key, message: str) -> Problem:
        """Return a problem at the line of a value."""
        line, path = self._locate(key_path)
        file = self.path if line is not None or self.path == VALUES_PATH else "override"
        return Problem(file, line, key_text(path), message)

    def _locate(self, key_path: Key) -> tuple[int | None, Key]:
        """Return the line of a value, and its key path in the file, before groups were expanded."""
        mark, path = self.mark, list[str | int]()
        for step in key_path:
            mark = mark.child(step)
            path.append(step if mark.index is None else mark.index)
        return mark.line, tuple(path)

    def validate(self, model: type[Model], error: type[InputError] = InputError) -> Model:
        """Return the document as an instance of ``model``, or raise one ``error`` with all problems."""
        instance, problems = self.examine(model)
        if problems or instance is None:
            raise error(*problems)
        return instance

    def examine(self, model: type[Model], salvage: bool = False) -> tuple[Model | None, list[Problem]]:
        """Return the instance (None if it could not be built) and all problems in the order of the file.

        With ``salvage``, keys with problems are omitted if possible, so that the rest of the file can be checked.
        """
        problems = list(self.problems)
        instance = None
        if self.data is None:
            problems.append(Problem(self.path, None, "", "the file is empty"))
        elif not isinstance(self.data, dict):
            problems.append(self.problem((), "expected `key: value` lines at the top of the file"))
        else:
            try:
                # strict JSON mode: a list may become a tuple, an int a float, but text never a number
                instance = model.model_validate_json(json.dumps(self.data), strict=True)
            except pydantic.ValidationError as failure:
                explained_keys = explain(failure, model, self.data)
                known_keys = {problem.key for problem in problems}
                explained = [self.problem(key, text) for key, text in explained_keys]
                problems += [problem for problem in explained if problem.key not in known_keys]
                if salvage:
                    instance = _validate_without(model, self.data, [key for key, _ in explained_keys])
        return instance, sort_by_line(problems)

    def with_overrides(self, overrides: Mapping[str, Any], error: type[InputError] = InputError) -> "Document":
        """Return the document with values replaced or added.

        Parameters
        ----------
        overrides : new value by path: ``{"simulation.dt": 0.002, "environment.surfaces[0].friction": 0.4}``. An item
            of a list may also be named: ``environment.surfaces[table].friction``. Text is parsed as in the file:
            ``"0.4"`` is a number, ``"[1, 2]"`` a list; values of ``TEXT_KEYS`` remain text.
        """
        data, mark, problems = self.data, self.mark, []
        for path, value in overrides.items():
            try:
                data, mark = _replaced(data, mark, _steps(path), _override(value, path in TEXT_KEYS))
            except ValueError as reason:
                inner = key_text(reason.key) if isinstance(reason, PlainValueError) else ""
                separator = "." if inner and not inner.startswith("[") else ""
                problems.append(Problem("override", None, f"{path}{separator}{inner}", str(reason)))
        if problems:
            raise error(*problems)
        return Document(self.path, data, mark, self.problems)

    def with_data(self, data: Any, mark: Mark | None = None) -> "Document":
        """Return the document with other values, at the same lines or at those of ``mark``."""
        return Document(self.path, data, self.mark if mark is None else mark, self.problems)


def read_document(
    path: str | os.PathLike[str], error: type[InputError] = InputError, collect: bool = False
) -> Document:
    """Read a YAML file.

    Parameters
    ----------
    path : path of the file.
    error : type of exceptions.
    collect : whether to store recoverable problems in ``document.problems`` instead of raising them.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as reason:
        raise error(Problem(name, None, "", f"cannot be read: {(reason.strerror or str(reason)).lower()}")) from None
    except ValueError as reason:  # a null byte in the name
        raise error(Problem(repr(name), None, "", f"cannot be read: {reason}")) from None
    if len(content) > MAX_BYTES:
        raise error(Problem(name, None, "", f"larger than {MAX_BYTES // 1_000_000} MB"))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as reason:
        line = content.count(b"\n", 0, reason.start) + 1
        raise error(Problem(name, line, "", f"byte 0x{content[reason.start]:02x} is not UTF-8 text")) from None
    try:
        builder = Builder(text)
    except YamlError as reason:
        raise error(Problem(name, reason.line, "", reason.message)) from None
    problems = [Problem(name, line, key_text(key), message) for key, line, message in builder.problems]
    if problems and not collect:
        raise error(*problems)
    return Document(name, builder.data, builder.mark, problems, text)


def key_text(key_path: Key) -> str:
    """Return ``environment.surfaces[2].size`` for ``("environment", "surfaces", 2, "size")``."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in key_path)
    return text.removeprefix(".")


def sort_by_line(problems: Sequence[Problem]) -> list[Problem]:
    """Return the problems in the order of their lines, without duplicates; those of overrides are last."""
    unique = list(dict.fromkeys(problems))
    return sorted(unique, key=lambda p: (p.file == "override", p.line or 0))


def _validate_without(model: type[Model], data: Any, invalid_keys: Sequence[Key]) -> Model | None:
    """Return the instance of the data with misspelt keys corrected and other invalid keys omitted.

    Several rounds are needed, because a corrected key may have an invalid value.
    """
    data = copy.deepcopy(data)
    for _ in range(3):
        for key in invalid_keys:
            inner: Any = data
            for step in key[:-1]:
                inner = inner.get(step) if isinstance(inner, dict) else inner[int(step)]
            if key and isinstance(inner, dict):  # items of lists are kept, because removal would shift the others
                intended_key = find_intended_key(model, data, key)
                value = inner.pop(key[-1], None)
                if intended_key is not None:
                    inner[intended_key] = value
        try:
            return model.model_validate_json(json.dumps(data), strict=True)
        except pydantic.ValidationError as failure:
            invalid_keys = [key for key, _ in explain(failure, model, data)]
    return None


def _steps(path: str) -> list[str]:
    steps, end = [], 0
    for match in _PATH_STEP.finditer(path):
        if match.start() != end:
            break
        steps.append(match[1] if match[1] is not None else f"[{match[2]}]")
        end = match.end()
    if not steps or end != len(path):
        raise ValueError("not a path such as simulation.dt or environment.surfaces[0].friction")
    return steps


def _replaced(data: Any, mark: Mark, steps: list[str], value: Any) -> tuple[Any, Mark]:
    """Return data and mark with the value at a path replaced; only the path is copied, the original is unchanged."""
    if not steps:
        return value, Mark(None)
    step, remaining_steps = steps[0], steps[1:]
    if step.startswith("["):
        if not isinstance(data, list):
            raise ValueError(f"there is no list at {step}")
        index = _index(data, step[1:-1])
        children = mark.children if isinstance(mark.children, list) else [Mark(None) for _ in data]
        item, item_mark = _replaced(data[index], children[index], remaining_steps, value)
        return [*data[:index], item, *data[index + 1 :]], Mark(
            mark.line, [*children[:index], item_mark, *children[index + 1 :]]
        )
    if data is not None and not isinstance(data, dict):
        raise ValueError(f"`{step}` would be a key inside {_kind(data)}")
    old_values, old_marks = data or {}, mark.children if isinstance(mark.children, dict) else {}
    item, item_mark = _replaced(old_values.get(step), old_marks.get(step, Mark(None)), remaining_steps, value)
    return {**old_values, step: item}, Mark(mark.line, {**old_marks, step: item_mark})


def _index(items: list[Any], text: str) -> int:
    if text.isdigit():
        if int(text) < len(items):
            return int(text)
        raise ValueError(f"[{text}]: the list has {len(items)} items, counted from 0")
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    if text in names:
        return names.index(text)
    known = ", ".join(str(n) for n in names if n is not None) or "none has a name"
    raise ValueError(f"[{text}]: no item of that name ({known})")


def _override(value: Any, text: bool) -> Any:
    """Return the parsed value of an override; for a key with a text, quotation marks are optional."""
    if not isinstance(value, str):
        return plain_value(value)
    if text and value[:1] not in ("'", '"'):
        return value
    try:
        builder = Builder(value)
    except YamlError as reason:
        raise ValueError(reason.message) from None
    if builder.problems:
        raise ValueError(builder.problems[0][2])
    return builder.data


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, list) else f"the value {value!r}"
