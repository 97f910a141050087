"""Strict XML reader: elements with line numbers, typed attributes, problems with line numbers.

ElementTree has no line numbers, and tolerant readers accept truncated files. This reader uses the standard library's
expat; it refuses document types and entities (entities can expand without bound), and anything beyond the limits below.
"""

import math
import re
import warnings
from dataclasses import dataclass, field
from xml.parsers import expat

import numpy as np

from mcplan.errors import Problem, RobotError
from mcplan.robot.description import RobotWarning
from mcplan.robot.pose import rotation_from_rpy
from mcplan.util.spelling import did_you_mean

MAX_BYTES = 32_000_000
MAX_DEPTH = 32
MAX_ELEMENTS = 200_000
"""Maximum size of a file, maximum depth of nested elements, and maximum number of elements."""

MAX_TEXT = 1000
"""Maximum number of stored characters of an element's text."""


@dataclass(slots=True)
class Element:
    """One element of the file.

    ``line`` is the line where it begins; ``text`` the first ``MAX_TEXT`` characters of its text, and ``words`` the word
    count of all of its text.
    """

    tag: str
    attributes: dict[str, str]
    line: int
    children: list["Element"] = field(default_factory=list)
    text: str = ""
    words: int = 0

    def all(self, tag: str) -> list["Element"]:
        """Return the children with this tag."""
        return [child for child in self.children if child.tag == tag]


class _ParseError(Exception):
    """Raised inside expat's handlers, with the line of the error."""

    def __init__(self, line: int, message: str):
        super().__init__(message)
        self.line, self.message = line, message


def read_xml(data: bytes, file: str) -> Element:
    """Parse one XML document.

    Parameters
    ----------
    data : the bytes of the file.
    file : its name in messages.

    Returns
    -------
    The root element.

    Raises
    ------
    RobotError
        The file is too large or too deep, is not well-formed, ends early, or declares a document type or entities.
    """
    if len(data) > MAX_BYTES:
        raise RobotError(Problem(file, 1, "", f"the file has {len(data)} bytes, at most {MAX_BYTES} are read"))
    parser = expat.ParserCreate()
    parser.buffer_text = True
    stack: list[Element] = []
    roots: list[Element] = []
    count, is_word_ended = 0, True

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count, is_word_ended
        count, is_word_ended = count + 1, True
        element = Element(tag, attributes, parser.CurrentLineNumber)
        if len(stack) >= MAX_DEPTH:
            raise _ParseError(element.line, f"elements are nested more than {MAX_DEPTH} deep")
        if count > MAX_ELEMENTS:
            raise _ParseError(element.line, f"more than {MAX_ELEMENTS} elements")
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(_tag: str) -> None:
        nonlocal is_word_ended
        stack.pop()
        is_word_ended = True

    def characters(text: str) -> None:
        nonlocal is_word_ended
        element = stack[-1]
        element.words += len(text.split()) - (not is_word_ended and not text[0].isspace())  # a word may be split
        is_word_ended = text[-1].isspace()
        if len(element.text) < MAX_TEXT:  # the text of a mesh, its numbers, is not needed
            element.text += text[:MAX_TEXT]

    def doctype(*_args: object) -> None:
        raise _ParseError(parser.CurrentLineNumber, "a document type (<!DOCTYPE ...>) or entity is not allowed here")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except _ParseError as reason:
        raise RobotError(Problem(file, reason.line, "", reason.message)) from None
    except expat.ExpatError as error:
        message = f"not well-formed XML: {expat.errors.messages.get(error.code, 'unreadable')}"
        if stack:
            message += f" (inside <{stack[-1].tag}>, which begins on line {stack[-1].line})"
        raise RobotError(Problem(file, max(error.lineno, 1), "", message)) from None
    except (LookupError, ValueError, TypeError) as error:  # an encoding that Python does not know or cannot use here
        raise RobotError(Problem(file, 1, "", f"the XML encoding cannot be used: {error}")) from None
    return roots[0]


# Python's float() also takes 1_000, nan and infinity
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_FIRST_DETAIL = re.compile(r"[\d'\"]")
MAX_VALUE = 1e9
"""Largest allowed length, mass or inertia; a joint limit above it counts as no limit."""


def brief(text: str) -> str:
    """Format a text for a message: quoted, shortened, without control characters."""
    return repr(text if len(text) <= 40 else text[:37] + "...")


def triple(values: np.ndarray) -> str:
    """Format numbers for a message, separated by commas."""
    return ", ".join(f"{value:.4g}" for value in values)


class Notes:
    """Collects the problems and warnings of one file, and converts attributes."""

    def __init__(self, file: str, strict: bool):
        self.file, self.strict = file, strict
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def problem(self, element: Element | int, key: str, message: str) -> None:
        """Add a problem that makes the file unusable."""
        line = element if isinstance(element, int) else element.line
        self.problems.append(Problem(self.file, line, key, message))

    def warning(self, element: Element | int, key: str, message: str) -> None:
        """Add a problem in strict mode, otherwise a warning."""
        if self.strict:
            self.problem(element, key, message)
        else:
            self.warnings.append(
                Problem(self.file, element if isinstance(element, int) else element.line, key, message)
            )

    def raise_problems(self) -> None:
        """Raise all problems in the order of the file, if there are any."""
        if self.problems:
            raise RobotError(*sorted(self.problems, key=lambda problem: problem.line or 0))

    def warn(self, stacklevel: int) -> None:
        """Issue the warnings, one for each kind of message."""
        for group in self.by_kind():
            text = str(group[0])
            if len(group) > 1:
                other_keys = ", ".join(dict.fromkeys(warning.key for warning in group[1:] if warning.key))
                lines = f"line{'s' * (len(group) > 2)} {', '.join(str(warning.line) for warning in group[1:])}"
                text += f" (and {len(group) - 1} more like it: {other_keys[:200] or lines[:200]})"
            warnings.warn(text, RobotWarning, stacklevel=stacklevel + 1)

    def by_kind(self) -> list[list[Problem]]:
        """Return groups of warnings whose texts agree up to their first number or name, in the order of the file."""
        kinds: dict[str, list[Problem]] = {}
        for warning in self.warnings:
            kinds.setdefault(_FIRST_DETAIL.split(warning.message, maxsplit=1)[0], []).append(warning)
        return list(kinds.values())

    # -- values ---------------------------------------------------------------------------------------------------

    def text(self, element: Element, attribute: str, key: str) -> str | None:
        """Return an attribute; if it is missing or empty, add a problem and return None."""
        value = element.attributes.get(attribute, "").strip()
        if not value:
            self.problem(element, key, f"<{element.tag}> needs the attribute {attribute}")
            return None
        if "${" in value or "$(" in value:
            self.problem(element, key, f"{attribute}={brief(value)} is unexpanded xacro: expand it with `xacro` first")
            return None
        return value

    def vector(self, element: Element, attribute: str, size: int, key: str, default=None) -> np.ndarray | None:
        """Return an attribute of ``size`` finite numbers (size,), or ``default`` if it is missing.

        Without a default a missing attribute is a problem. After a problem the result is None, so that the caller can
        continue.
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

    def bounded_vector(self, element: Element, attribute: str, size: int, key: str, default=None) -> np.ndarray | None:
        """Return numbers as `vector` does; numbers above ``MAX_VALUE`` are a problem."""
        numbers = self.vector(element, attribute, size, key, default)
        if numbers is not None and np.abs(numbers).max() > MAX_VALUE:
            self.problem(element, key, f"{attribute}={brief(element.attributes[attribute])} is beyond {MAX_VALUE:g}")
            return None
        return numbers

    def single(self, element: Element, tag: str, key: str, required: bool = False) -> Element | None:
        """Return the first child with this tag, or None; several ones, or none if it is required, are a problem."""
        children = element.all(tag)
        if len(children) > 1:
            self.problem(children[1], key, f"<{tag}> is given more than once")
        if not children and required:
            self.problem(element, key, f"<{element.tag}> needs a <{tag}>")
        return children[0] if children else None

    def origin(self, element: Element, key: str) -> tuple[np.ndarray, np.ndarray]:
        """Return rotation (3,3) and position (3,) of the element's ``<origin>``; the identity if it has none."""
        origin = self.single(element, "origin", key)
        if origin is None:
            return np.eye(3), np.zeros(3)
        p = self.bounded_vector(origin, "xyz", 3, key, (0, 0, 0))
        rpy = self.bounded_vector(origin, "rpy", 3, key, (0, 0, 0))
        return np.eye(3) if rpy is None else rotation_from_rpy(rpy), np.zeros(3) if p is None else p

    def warn_unknown_tags(self, element: Element, tags: tuple[str, ...], key: str) -> None:
        """Warn of unknown child tags, which are ignored."""
        for child in element.children:
            if child.tag not in tags and (near := did_you_mean(child.tag, tags)):
                self.warning(child, key, f"unknown element <{child.tag[:40]}> is ignored{near}")
