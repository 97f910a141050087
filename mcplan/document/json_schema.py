"""JSON Schema export of a file format, from its pydantic model."""

import ast
import inspect
import re
import sys
from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

EXPRESSION = {"type": "string", "pattern": "^="}
"""Schema of an expression in place of a number (`mcplan.scenario.expression`)."""


@cache
def field_docs(model: type[BaseModel]) -> dict[str, str]:
    """Return the docstrings below the fields of a model in its source, by field.

    One docstring may describe several fields above it.
    """
    docs: dict[str, str] = {}
    for owner in reversed([c for c in model.__mro__ if issubclass(c, BaseModel) and c is not BaseModel]):
        tree = ast.parse(inspect.getsource(sys.modules[owner.__module__]))
        body = next(n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == owner.__name__).body
        undocumented: list[str] = []
        for node in body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                undocumented.append(node.target.id)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and undocumented:
                docs |= dict.fromkeys(undocumented, " ".join(str(node.value.value).split()))
                undocumented = []
            else:
                undocumented = []
    return docs


class _Generator(GenerateJsonSchema):
    """Pydantic's generator with field docstrings as descriptions, and without titles that repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        result = super().model_schema(schema)
        result.pop("title", None)
        model = schema["cls"]
        for name, field in model.model_fields.items():
            key = result["properties"][field.alias or name]
            if key.get("default", ...) is None:
                del key["default"]
            if text := field_docs(model).get(name):
                key["description"] = text
        for description_owner in (result, *result["properties"].values()):
            if text := description_owner.get("description"):
                description_owner["description"] = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace(
                    "``", "`"
                )  # no links
        return result

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        result = super().dict_schema(schema)
        if result.get("additionalProperties") is True:  # older versions of pydantic omit it
            del result["additionalProperties"]
        return result

    def tuple_schema(self, schema: Any) -> JsonSchemaValue:
        result = super().tuple_schema(schema)
        first, *others = result.get("prefixItems", [None])
        if first is not None and all(
            other == first for other in others
        ):  # editors support `items` better than `prefixItems`
            result["items"] = first
            del result["prefixItems"]
        return result


class _WithExpressions(_Generator):
    """Generator that also allows an expression in place of any number."""

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        return {"anyOf": [super().float_schema(schema), EXPRESSION]}

    def int_schema(self, schema: Any) -> JsonSchemaValue:
        return {"anyOf": [super().int_schema(schema), EXPRESSION]}


def json_schema(model: type[BaseModel], title: str, expressions: bool = False) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a model's files.

    Parameters
    ----------
    title : title of the file format.
    expressions : whether a text such as ``=2*riser`` is allowed in place of a number.
    """
    generator = _WithExpressions if expressions else _Generator
    schema = model.model_json_schema(schema_generator=generator)
    return {"$schema": GenerateJsonSchema.schema_dialect, "title": title, **schema}
