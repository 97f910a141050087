"""Strict XML: elements that know their line, read by the standard library's expat.

ElementTree keeps no line numbers, and tolerant readers accept a robot cut in half. Here a document type or an entity is
refused (entities can expand without bound), as is anything beyond the caps below.
"""

from dataclasses import dataclass, field
from xml.parsers import expat

from mcplan.errors import Problem, RobotError

MAX_BYTES = 32_000_000
MAX_DEPTH = 32
MAX_ELEMENTS = 200_000
MAX_TEXT = 1000
"""Characters kept of an element's text."""


@dataclass(slots=True)
class Element:
    """One element of the file: its tag, attributes, children, the line on which it starts, and the text in it.

    ``words`` counts those of the whole text, of which ``text`` has the beginning.
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


class _Refused(Exception):  # noqa: N818 - never leaves this file
    """Raised inside expat's handlers; carries the line."""

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
    count, ended = 0, True

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal count, ended
        count, ended = count + 1, True
        element = Element(tag, attributes, parser.CurrentLineNumber)
        if len(stack) >= MAX_DEPTH:
            raise _Refused(element.line, f"elements are nested more than {MAX_DEPTH} deep")
        if count > MAX_ELEMENTS:
            raise _Refused(element.line, f"more than {MAX_ELEMENTS} elements")
        (stack[-1].children if stack else roots).append(element)
        stack.append(element)

    def end(_tag: str) -> None:
        nonlocal ended
        stack.pop()
        ended = True

    def characters(text: str) -> None:
        nonlocal ended
        element = stack[-1]
        element.words += len(text.split()) - (not ended and not text[0].isspace())  # a word may come in two pieces
        ended = text[-1].isspace()
        if len(element.text) < MAX_TEXT:  # a mesh's numbers are not read from here
            element.text += text[:MAX_TEXT]

    def doctype(*_args: object) -> None:
        raise _Refused(parser.CurrentLineNumber, "a document type (<!DOCTYPE ...>) or entity is not allowed here")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = doctype
    parser.EntityDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except _Refused as refused:
        raise RobotError(Problem(file, refused.line, "", refused.message)) from None
    except expat.ExpatError as error:
        message = f"not well-formed XML: {expat.errors.messages.get(error.code, 'unreadable')}"
        if stack:
            message += f" (inside <{stack[-1].tag}>, which begins on line {stack[-1].line})"
        raise RobotError(Problem(file, max(error.lineno, 1), "", message)) from None
    except (LookupError, ValueError, TypeError) as error:  # an encoding that Python does not know or cannot use here
        raise RobotError(Problem(file, 1, "", f"the XML encoding cannot be used: {error}")) from None
    return roots[0]
