"""The keys of a file format as tables, read from the models that check the files.

A page says where::

    ```{schema-keys} MODULE:CLASS
    ```

`mcplan.document.json_schema` reads the words of a key.
"""

import inspect
import re
import types
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as limits
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from mcplan.document.json_schema import field_docs


@dataclass(frozen=True)
class Key:
    """One row of a table: key, type, default, description."""

    name: str
    type: str
    default: str
    words: str


def models_of(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models in an annotation."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_of(part)


def _ranged(metadata: list[Any]) -> str:
    parts = []
    for item in metadata:
        for inner in getattr(item, "metadata", [item]):
            for kind, sign in ((limits.Gt, ">"), (limits.Ge, "≥"), (limits.Lt, "<"), (limits.Le, "≤")):
                if isinstance(inner, kind):
                    parts.append(f"{sign} {getattr(inner, kind.__name__.lower()):g}")
            if isinstance(inner, limits.MinLen):
                parts.append(f"length ≥ {inner.min_length}")
            if isinstance(inner, limits.MaxLen):
                parts.append(f"length ≤ {inner.max_length}")
            if isinstance(inner, limits.MultipleOf):
                parts.append("even" if inner.multiple_of == 2 else f"a multiple of {inner.multiple_of}")
            if pattern := getattr(inner, "pattern", None):
                parts.append(f"matching `{pattern}`")
    return ", ".join(parts)


PLAIN = {float: "number", int: "whole number", str: "text", bool: "true or false", Any: "anything"}


def said_type(annotation: Any) -> str:
    """Return an annotation in words."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation in PLAIN:
        return PLAIN[annotation]
    if origin is Annotated:
        inner, extent = said_type(parts[0]), _ranged([*parts[1:]])
        return f"{inner} {extent}" if extent else inner
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(said_type(part) for part in parts if part is not type(None))
    if origin is tuple and len(parts) == 2 and parts[1] is Ellipsis:
        return f"list of {said_type(parts[0])}"
    if origin is tuple and len(set(parts)) == 1:
        return f"{len(parts)} × {said_type(parts[0])}"
    if origin is tuple:
        return "[" + ", ".join(said_type(part) for part in parts) + "]"
    if origin in (list, set, frozenset):
        return f"list of {said_type(parts[0])}"
    if origin is dict:
        return f"{{{said_type(parts[0])}: {said_type(parts[1])}}}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return f"[{title(annotation)}](#{anchor(annotation)})"
    if isinstance(annotation, type):
        return annotation.__name__
    return str(getattr(annotation, "__value__", annotation))


def title(model: type[BaseModel]) -> str:
    """Return the name of a part of a file."""
    name = model.__name__
    for ending in ("Spec", "Section", "Settings"):
        name = name.removesuffix(ending)
    return name or model.__name__


def anchor(model: type[BaseModel]) -> str:
    """Return the name that links to a part of a file."""
    return f"keys-{model.__module__.rpartition('.')[2].replace('_', '-')}-{model.__name__.lower()}"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default_factory() if field.default_factory else field.default  # type: ignore[call-arg]
    if value is None or value is PydanticUndefined or value in ((), [], {}, "") or isinstance(value, BaseModel):
        return "–"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{list(value) if isinstance(value, tuple) else value}`"


def keys(model: type[BaseModel]) -> list[Key]:
    """Return the keys of a part of a file."""
    found = []
    for name, field in model.model_fields.items():
        kind = said_type(field.annotation)
        if extent := _ranged(field.metadata):
            kind = f"{kind} {extent}"
        text = field_docs(model).get(name, field.description or "")
        found.append(Key(field.alias or name, kind, _default(field), text))
    return found


def parts(model: type[BaseModel]) -> list[type[BaseModel]]:
    """Return a model and all that its keys are made of, each once, in the order in which they are met."""
    found: list[type[BaseModel]] = []
    waiting = [model]
    while waiting:
        one = waiting.pop(0)
        if one not in found:
            found.append(one)
            waiting += [inner for field in one.model_fields.values() for inner in models_of(field.annotation)]
    return found


def markdown(model: type[BaseModel]) -> str:
    """Return the tables of a file format."""
    lines = []
    for part in parts(model):
        about = " ".join((inspect.getdoc(part) or "").split("\n\n")[0].split())
        lines += [f"({anchor(part)})=", f"## {title(part)}", "", about, "", "| key | is | default | |"]
        lines.append("|---|---|---|---|")
        for key in keys(part):
            cells = [f"`{key.name}`", key.type, key.default, key.words]
            lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def expanded(text: str) -> str:
    """Return a page with the tables in the place of its directives."""

    def tables(found: re.Match[str]) -> str:
        return markdown(getattr(import_module(found[1]), found[2]))

    return re.sub(r"^```\{schema-keys\} ([\w.]+):(\w+)\n```$", tables, text, flags=re.MULTILINE)


def setup(app: Any) -> dict[str, bool]:
    """Have Sphinx expand pages as it reads them."""

    def read(app: Any, name: str, source: list[str]) -> None:
        source[0] = expanded(source[0])

    app.connect("source-read", read)
    return {"parallel_read_safe": True}
