"""Arithmetic expressions of scenario files: ``=2*riser`` becomes a number.

An expression holds numbers, names (``riser``, ``robot.leg``), ``+ - * / **``, parentheses, ``pi``, and the functions
``sin cos tan sqrt min max``. It is parsed with Python's grammar; any other node is refused. All values are doubles, so
that powers cannot grow without bound.
"""

import ast
import keyword
import math
import operator
import unicodedata
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping

from mcplan.util.spelling import did_you_mean_or_all

MAX_CHARACTERS = 200
"""Maximum number of characters of an expression."""

ROBOT = "robot"
"""Object whose attributes are the sizes of the robot: ``robot.leg``."""

CONSTANTS = {"pi": math.pi}
"""Constants by name."""

FUNCTIONS: dict[str, tuple[Callable[..., float], bool]] = {
    "sin": (math.sin, False),
    "cos": (math.cos, False),
    "tan": (math.tan, False),
    "sqrt": (math.sqrt, False),
    "min": (min, True),
    "max": (max, True),
}
"""Functions by name, each with whether it takes two or more arguments instead of one."""

RESERVED_NAMES = frozenset({*CONSTANTS, *FUNCTIONS})

_BINARY_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_UNARY_OPERATORS: dict[type[ast.unaryop], Callable[[float], float]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}


class ExpressionError(ValueError):
    """An expression is invalid; the message is the reason."""


def same_name(name: str) -> str:
    """Normalize a name as Python does (NFKC): equivalent letters, such as the two micro signs, become the same."""
    return unicodedata.normalize("NFKC", name)


def is_name(name: str) -> bool:
    """Return whether a parameter may have this name in expressions."""
    return name.isidentifier() and not keyword.iskeyword(same_name(name)) and same_name(name) not in RESERVED_NAMES


class Expression:
    """A parsed expression: the ``names`` that it uses, and its value for given values of these.

    Raises
    ------
    ExpressionError
        The text is not an arithmetic expression as described in this module.
    """

    def __init__(self, text: str):
        self.text = text.strip()
        if len(self.text) > MAX_CHARACTERS:
            raise ExpressionError(f"longer than {MAX_CHARACTERS} characters")
        try:
            with warnings.catch_warnings():  # Python warns about text such as `1if`, which is an error below
                warnings.simplefilter("ignore")
                self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise ExpressionError("not an arithmetic expression") from None
        self.names: tuple[str, ...] = tuple(dict.fromkeys(_used_names(self._tree)))

    def value(self, names: Mapping[str, float]) -> float:
        """Return the value, a finite double; ``names`` has the values of the names.

        Raises
        ------
        ExpressionError
            A name is unknown, or the result is not a finite real number.
        """
        for name in self.names:
            if name not in names:
                raise ExpressionError(f"unknown name `{name}`{_hint(name, names)}")
        try:
            result = _evaluate(self._tree, names)
        except ZeroDivisionError:
            raise ExpressionError("division by zero") from None
        except (ValueError, OverflowError):
            raise ExpressionError("no finite real result") from None
        return result


def _used_names(node: ast.expr) -> Iterable[str]:
    """Yield the names in the order of the text; raise an error for a node that is not arithmetic."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return
    if isinstance(node, ast.Name):
        if node.id in FUNCTIONS:
            raise ExpressionError(f"`{node.id}` is a function: {node.id}(...)")
        if node.id not in CONSTANTS:
            yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == ROBOT:
        yield f"{ROBOT}.{node.attr}"
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY_OPERATORS:
        yield from _used_names(node.operand)
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY_OPERATORS:
        yield from _used_names(node.left)
        yield from _used_names(node.right)
    elif isinstance(node, ast.Call):
        yield from _used_names_of_call(node)
    else:
        raise ExpressionError(f"only numbers, names, + - * / **, parentheses and {', '.join(FUNCTIONS)} are allowed")


def _used_names_of_call(node: ast.Call) -> Iterable[str]:
    if not isinstance(node.func, ast.Name) or node.func.id not in FUNCTIONS or node.keywords:
        raise ExpressionError(f"only these functions may be called: {', '.join(FUNCTIONS)}")
    name, variadic = node.func.id, FUNCTIONS[node.func.id][1]
    if (len(node.args) < 2) if variadic else (len(node.args) != 1):
        raise ExpressionError(f"{name} takes {'two arguments or more' if variadic else 'one argument'}")
    for argument in node.args:
        yield from _used_names(argument)


def _evaluate(node: ast.expr, names: Mapping[str, float]) -> float:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, (int, float))
        result = float(node.value)
    elif isinstance(node, ast.Name):
        result = CONSTANTS[node.id] if node.id in CONSTANTS else float(names[node.id])
    elif isinstance(node, ast.Attribute):
        result = float(names[f"{ROBOT}.{node.attr}"])
    elif isinstance(node, ast.UnaryOp):
        result = _UNARY_OPERATORS[type(node.op)](_evaluate(node.operand, names))
    elif isinstance(node, ast.BinOp):
        result = _BINARY_OPERATORS[type(node.op)](_evaluate(node.left, names), _evaluate(node.right, names))
    else:
        assert isinstance(node, ast.Call)
        assert isinstance(node.func, ast.Name)
        result = FUNCTIONS[node.func.id][0](*(_evaluate(argument, names) for argument in node.args))
    if isinstance(result, complex) or not math.isfinite(result):
        raise OverflowError
    return result


def _hint(name: str, known: Collection[str]) -> str:
    if name.startswith(f"{ROBOT}.") and not any(other.startswith(f"{ROBOT}.") for other in known):
        return ": the robot has no such size, as it stands on no sole in half_sitting (`mcplan robot check`)"
    return did_you_mean_or_all(name, known) if known else "; the file has no parameters"
