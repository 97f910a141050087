"""Docstrings as they are written here: behind ``name :`` stands a meaning, and indented equations stay as they are."""

import re
from typing import Any

SECTIONS = ("Parameters", "Attributes", "Raises", "Returns")


def with_meanings(lines: list[str]) -> list[str]:
    """Return a docstring whose entries ``name : meaning`` stand as name and, below it, meaning."""
    result: list[str] = []
    inside = False
    for number, line in enumerate(lines):
        if line and set(line.strip()) == {"-"} and number and lines[number - 1].strip() in SECTIONS:
            inside = True
        elif number + 1 < len(lines) and lines[number + 1] and set(lines[number + 1].strip()) == {"-"}:
            inside = False
        entry = re.fullmatch(r"([\w*, ]+?) : (.+)", line) if inside else None
        result += [entry[1], f"    {entry[2]}"] if entry else [line]
    return result


def with_blocks(lines: list[str]) -> list[str]:
    """Return a docstring whose indented equations and examples, before the first section, are literal."""
    result: list[str] = []
    inside = False
    for number, line in enumerate(lines):
        if number + 1 < len(lines) and lines[number + 1] and set(lines[number + 1].strip()) == {"-"}:
            return result + lines[number:]
        indented = line.startswith("    ")
        if indented and not inside and number and not lines[number - 1].strip():
            above = next((text for text in reversed(result) if text.strip()), "")
            result += [] if above.endswith("::") else ["::", ""]
        inside = indented or (inside and not line.strip())
        result.append(line)
    return result


def setup(app: Any) -> dict[str, bool]:
    """Have autodoc ask before Napoleon reads the sections."""

    def process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
        if what in ("attribute", "property"):
            lines[:0] = ["..", ""]  # a comment: Napoleon takes for a type what the first line has before a colon
        lines[:] = with_meanings(with_blocks(lines))

    app.connect("autodoc-process-docstring", process, priority=400)
    return {"parallel_read_safe": True}
