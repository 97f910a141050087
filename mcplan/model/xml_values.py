"""Typed values out of XML attributes; every problem is noted with its line, and reading goes on."""

import difflib
import math
import re
import warnings

import numpy as np

from mcplan.errors import Problem, RobotError
from mcplan.model.description import RobotWarning
from mcplan.model.pose import rotation_from_rpy
from mcplan.model.xml_reader import Element

# Python's float() also takes 1_000, nan and infinity
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_KIND = re.compile(r"[\d'\"]")
MAX_VALUE = 1e9
"""Larger lengths, masses and inertias are refused; larger joint limits mean none."""


def brief(text: str) -> str:
    """Return the text as it may stand in a message: quoted, short, without control characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def triple(values: np.ndarray) -> str:
    """Return numbers as a message shows them."""
    return ", ".join(f"{value:.4g}" for value in values)


def closest(name: str, known) -> str:
    """Return ``; did you mean 'x'?`` for the known name nearest to this one, or nothing."""
    near = difflib.get_close_matches(name[:80], list(known), n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


class Notes:
    """The problems and doubts met while reading one file."""

    def __init__(self, file: str, strict: bool):
        self.file, self.strict = file, strict
        self.problems: list[Problem] = []
        self.doubts: list[Problem] = []

    def problem(self, element: Element | int, key: str, message: str) -> None:
        """Note something that makes the file unusable."""
        line = element if isinstance(element, int) else element.line
        self.problems.append(Problem(self.file, line, key, message))

    def doubt(self, element: Element | int, key: str, message: str) -> None:
        """Note something that is refused in strict mode and warned about otherwise."""
        if self.strict:
            self.problem(element, key, message)
        else:
            self.doubts.append(Problem(self.file, element if isinstance(element, int) else element.line, key, message))

    def settle(self) -> None:
        """Raise all problems in the order of the file, if there are any."""
        if self.problems:
            raise RobotError(*sorted(self.problems, key=lambda problem: problem.line or 0))

    def warn(self, stacklevel: int) -> None:
        """Issue the doubts as Python warnings; those of one kind, which differ in their numbers, as one."""
        for alike in self.by_kind():
            text = str(alike[0])
            if len(alike) > 1:
                others = ", ".join(dict.fromkeys(doubt.key for doubt in alike[1:] if doubt.key))
                lines = f"line{'s' * (len(alike) > 2)} {', '.join(str(doubt.line) for doubt in alike[1:])}"
                text += f" (and {len(alike) - 1} more like it: {others[:200] or lines[:200]})"
            warnings.warn(text, RobotWarning, stacklevel=stacklevel + 1)

    def by_kind(self) -> list[list[Problem]]:
        """Return the doubts by what they say, up to its first number or name, in the order of the file."""
        kinds: dict[str, list[Problem]] = {}
        for doubt in self.doubts:
            kinds.setdefault(_KIND.split(doubt.message, maxsplit=1)[0], []).append(doubt)
        return list(kinds.values())

    # -- values ---------------------------------------------------------------------------------------------------

    def text(self, element: Element, attribute: str, key: str) -> str | None:
        """Return a non-empty attribute, or note that it is missing."""
        value = element.attributes.get(attribute, "").strip()
        if not value:
            self.problem(element, key, f"<{element.tag}> needs the attribute {attribute}")
            return None
        if "${" in value or "$(" in value:
            self.problem(element, key, f"{attribute}={brief(value)} is unexpanded xacro: expand it with `xacro` first")
            return None
        return value

    def vector(self, element: Element, attribute: str, size: int, key: str, default=None) -> np.ndarray | None:
        """Return ``size`` finite numbers; the default (or a problem, if there is none) where the attribute is absent.

        Returns None after a problem, so that the caller can go on to the next one.
        """
        if attribute not in element.attributes:
            if default is None:
                self.problem(element, key, f"<{element.tag}> needs the attribute {attribute}")
                return None
            return np.array(default, float)
        value = element.attributes[attribute]
        if "${" in value or "$(" in value:
            self.problem(element, key, f"{attribute}={brief(value)} is unexpanded xacro: expand it with `xacro` first")
            return None
        words = value.split()
        numbers = [float(word) if _NUMBER.fullmatch(word) else math.nan for word in words[: size + 1]]
        if len(numbers) != size:
            self.problem(element, key, f"{attribute}={brief(value)} should be {size} number{'s' * (size > 1)}")
            return None
        if not all(math.isfinite(number) for number in numbers):
            self.problem(element, key, f"{attribute}={brief(value)} is not finite numbers")
            return None
        return np.array(numbers)

    def lengths(self, element: Element, attribute: str, size: int, key: str, default=None) -> np.ndarray | None:
        """Return numbers of a physical size, as ``vector``."""
        numbers = self.vector(element, attribute, size, key, default)
        if numbers is not None and np.abs(numbers).max() > MAX_VALUE:
            self.problem(element, key, f"{attribute}={brief(element.attributes[attribute])} is beyond {MAX_VALUE:g}")
            return None
        return numbers

    def positive(self, element: Element, attribute: str, size: int, key: str) -> np.ndarray | None:
        """Return positive numbers, as ``lengths``."""
        numbers = self.lengths(element, attribute, size, key)
        if numbers is not None and not (numbers > 0).all():
            self.problem(element, key, f"{attribute}={brief(element.attributes[attribute])} should be positive")
            return None
        return numbers

    def single(self, element: Element, tag: str, key: str, required: bool = False) -> Element | None:
        """Return the only child with this tag, or None; note when there are several or a required one is missing."""
        found = element.all(tag)
        if len(found) > 1:
            self.problem(found[1], key, f"<{tag}> is given more than once")
        if not found and required:
            self.problem(element, key, f"<{element.tag}> needs a <{tag}>")
        return found[0] if found else None

    def origin(self, element: Element, key: str) -> tuple[np.ndarray, np.ndarray]:
        """Return rotation (3,3) and position (3,) of the element's ``<origin>``; the identity where there is none."""
        origin = self.single(element, "origin", key)
        if origin is None:
            return np.eye(3), np.zeros(3)
        p = self.lengths(origin, "xyz", 3, key, (0, 0, 0))
        rpy = self.lengths(origin, "rpy", 3, key, (0, 0, 0))
        return np.eye(3) if rpy is None else rotation_from_rpy(rpy), np.zeros(3) if p is None else p

    def known(self, element: Element, tags: tuple[str, ...], key: str) -> None:
        """Doubt children that look like a misspelt tag, which would otherwise be ignored."""
        for child in element.children:
            if child.tag not in tags and (near := closest(child.tag, tags)):
                self.doubt(child, key, f"unknown element <{child.tag[:40]}> is ignored{near}")
