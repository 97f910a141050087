"""Validation messages: the value, the expectation, and the closest known key."""

import types
import typing
from collections.abc import Iterator, KeysView
from typing import Any

import pydantic

from mcplan.errors import either
from mcplan.util.spelling import closest_name, did_you_mean, did_you_mean_or_all

_EXPECTATIONS = {
    "float_type": "a number",
    "float_parsing": "a number",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "list_type": "a list [...]",
    "tuple_type": "a list [...]",
    "dict_type": "a mapping {key: value}",
    "finite_number": "a finite number",
}
"""Expected values by the type of pydantic's error."""

_BOUNDS = {
    "greater_than": ("gt", ">"),
    "greater_than_equal": ("ge", ">="),
    "less_than": ("lt", "<"),
    "less_than_equal": ("le", "<="),
    "multiple_of": ("multiple_of", "that is a multiple of"),
}
"""By the type of pydantic's error: name of the bound in its context, and the operator in messages."""


def explain(
    failure: pydantic.ValidationError, model: type[pydantic.BaseModel], data: Any
) -> list[tuple[tuple[str | int, ...], str]]:
    """Return key path and message of each failure.

    For a union pydantic reports an error of each member. Those that only state what is expected become one message,
    which is omitted if there is a more specific one for the same key or a key within it.
    """
    expectations: dict[tuple[str | int, ...], list[str]] = {}
    messages: list[tuple[tuple[str | int, ...], str]] = []
    short_lists: dict[tuple[str | int, ...], int] = {}
    errors = [(error, _key_path(error["loc"], data, error["type"])) for error in failure.errors(include_url=False)]
    unknown = [key for error, key in errors if error["type"] == "extra_forbidden"]
    misspelt = {(*key[:-1], find_intended_key(model, data, key)) for key in unknown}
    for error, key in errors:
        if error["type"] == "missing" and key in misspelt:  # the key is present, misspelt, which is reported
            continue
        if error["type"] == "missing" and isinstance(key[-1], int):  # a list of fixed length is too short
            item_index = key[-1]
            key = key[:-1]
            if key not in short_lists:
                messages.append((key, ""))
            short_lists[key] = item_index + 1
            continue
        expectation = _mapping_expectation(model, key) if error["type"].startswith("model_") else _expectation(error)
        if expectation:
            expectations.setdefault(key, []).append(expectation)
            if len(expectations[key]) == 1:
                messages.append((key, ""))
        else:
            messages.append((key, _message(error, key, model, data)))
    for key, count in short_lists.items():
        expectations.setdefault(key, []).append(f"{count} items")
    keys_with_message = [key for key, text in messages if text]
    all_keys = keys_with_message + list(expectations)
    parent_keys = {key[:depth] for key in all_keys for depth in range(len(key))}
    messages = [
        (key, text) for key, text in messages if text or (key not in parent_keys and key not in keys_with_message)
    ]
    return [
        (key, text or f"expected {' or '.join(dict.fromkeys(expectations[key]))}, got {_format(_value(data, key))}")
        for key, text in messages
    ]


def find_intended_key(model: type[pydantic.BaseModel], data: Any, key: tuple[str | int, ...]) -> str | None:
    """Return the known key most similar to an unknown one; None if the key is known, or no known one is similar."""
    if str(key[-1]) in _known_keys(model, key[:-1]):
        return None
    return closest_name(str(key[-1]), _candidate_keys(model, data, key))


def _candidate_keys(model: type[pydantic.BaseModel], data: Any, key: tuple[str | int, ...]) -> list[str]:
    """Return the candidates for a misspelt key: known keys that are not present."""
    return sorted(_known_keys(model, key[:-1]) - set(_value(data, key[:-1]) or {}))


def _expectation(error: Any) -> str:
    """Return what is expected in place of a wrong value; empty for errors with their own message."""
    kind, context = error["type"], error.get("ctx", {})
    if kind in _EXPECTATIONS:
        return _EXPECTATIONS[kind]
    if kind in _BOUNDS:
        name, operator = _BOUNDS[kind]
        return f"a number {operator} {context[name]:g}"
    if kind in ("too_short", "too_long"):
        too_short = kind == "too_short"
        count = context["min_length" if too_short else "max_length"]
        return f"{'at least' if too_short else 'at most'} {count} item{'s' if count != 1 else ''}"
    return ""


def _mapping_expectation(model: type[pydantic.BaseModel], key: tuple[str | int, ...]) -> str:
    """Return the text for an expected mapping, with its first keys."""
    keys = list(_known_keys(model, key))
    return "a mapping {" + ", ".join([f"{name}: ..." for name in keys[:3]] + ["..."] * (len(keys) > 3)) + "}"


def _message(error: Any, key: tuple[str | int, ...], model: type[pydantic.BaseModel], data: Any) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return "missing; this key is required"
    if kind == "extra_forbidden":
        absent_keys, known_keys = _candidate_keys(model, data, key), _known_keys(model, key[:-1])
        word = str(key[-1])
        suggest_absent = closest_name(word, absent_keys) or not closest_name(word, known_keys)
        if nested := _nested_key(model, key):
            return f"unknown key; did you mean `{nested}`?"
        return "unknown key" + did_you_mean_or_all(
            word, sorted(absent_keys if absent_keys and suggest_absent else known_keys)
        )
    if kind == "literal_error":
        value = _value(data, key)
        options = [option.strip(" '") for option in context["expected"].replace(" or ", ", ").split(",")]
        return f"expected {either(options)}, got {_format(value)}{did_you_mean(str(value), options)}"
    if kind in ("value_error", "assertion_error"):
        return str(context["error"])
    text = error["msg"]
    return f"{text[0].lower()}{text[1:]}, got {_format(_value(data, key))}"


def _nested_key(model: type[pydantic.BaseModel], key: tuple[str | int, ...]) -> str | None:
    """Return the nested key that an unknown key resembles, such as ``gains.com_kp`` for ``com_kp``.

    The result is None if a key of the same level is more similar.
    """
    neighbours = _known_keys(model, key[:-1])
    spellings: dict[str, str] = {}
    for group in neighbours:
        for inner in _known_keys(model, (*key[:-1], group)):
            spellings |= dict.fromkeys((inner, f"{inner}_{group}", f"{group}_{inner}"), f"{group}.{inner}")
    closest_key = closest_name(str(key[-1]), [*neighbours, *spellings], cutoff=0.7)
    return None if not closest_key or closest_key in neighbours else spellings[closest_key]


def _format(value: Any) -> str:
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else value[:57] + "...")
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return f"a mapping with {len(value)} keys" if len(value) > 4 else "{" + ", ".join(value) + "}"
    if isinstance(value, list) and len(str(value)) > 60:
        return f"a list of {len(value)} items"
    return str(value)


def _key_path(loc: tuple[str | int, ...], data: Any, kind: str) -> tuple[str | int, ...]:
    """Return a location of pydantic without its labels of union members: the key path in the file."""
    path: list[str | int] = []
    for number, step in enumerate(loc):
        is_in_data = isinstance(data, dict) and step in data
        is_in_data = is_in_data or (isinstance(data, list) and isinstance(step, int) and step < len(data))
        if is_in_data:
            data = data[step]
        elif not (number == len(loc) - 1 and kind in ("missing", "extra_forbidden")):
            continue
        path.append(step)
    return tuple(path)


def _value(data: Any, key: tuple[str | int, ...]) -> Any:
    for step in key:
        try:
            data = data[step]
        except (KeyError, IndexError, TypeError):
            return None
    return data


def _known_keys(model: Any, key: tuple[str | int, ...]) -> KeysView[str]:
    annotations = [model]
    for step in key:
        annotations = [inner for annotation in annotations for inner in _annotations_at(annotation, step)]
    known: dict[str, None] = {}
    for member in (m for annotation in annotations for m in _members(annotation)):
        if isinstance(member, type) and issubclass(member, pydantic.BaseModel):
            known |= dict.fromkeys(field.alias or name for name, field in member.model_fields.items())
    return known.keys()


def _annotations_at(annotation: Any, step: str | int) -> Iterator[Any]:
    for member in _members(annotation):
        if isinstance(member, type) and issubclass(member, pydantic.BaseModel):
            for name, field in member.model_fields.items():
                if step in (name, field.alias):
                    yield field.annotation
        elif isinstance(step, int):
            yield from (a for a in typing.get_args(member) if a is not Ellipsis)
        else:
            yield from typing.get_args(member)[1:]


def _members(annotation: Any) -> Iterator[Any]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from _members(typing.get_args(annotation)[0])
    elif origin in (typing.Union, types.UnionType):
        for member in typing.get_args(annotation):
            yield from _members(member)
    else:
        yield annotation
