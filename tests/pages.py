"""What stands in code blocks of the README and the pages of docs/, and how a test runs it.

``pycon`` is a session whose answers are compared, ``python`` a script, ``sh`` commands of this program, ``yaml`` a
scenario or a part of one; ``text`` is only read. The blocks of a page follow each other in one directory, with one set
of names. A comment right above a block says what is different:

    <!-- not run: WHY -->
    <!-- file: NAME -->          the block is written to that file
    <!-- part of: SCENARIO -->   it is laid over that scenario, which then has to load
    <!-- part of robot.yaml -->
    <!-- slow -->
"""

import doctest
import re
import shlex
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcplan as mc
from mcplan.cli.main import main
from mcplan.document.document import read_document
from mcplan.robot.robot_schema import RobotSection

ROOT = Path(__file__).parents[1]
LANGUAGES = ("pycon", "python", "sh", "yaml", "text")


@dataclass(frozen=True)
class Block:
    """A code block: its language, its text, the line where it begins, and what the comment above it says."""

    language: str
    text: str
    line: int
    said: str


def pages() -> list[Path]:
    """Return the README and all pages of documentation."""
    beside = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "stances/README.md", "experiments/README.md")]
    return [*beside, *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> Iterator[Block]:
    """Yield the fenced blocks of a page; directives of Sphinx (``{name}``) are none."""
    lines = page.read_text(encoding="utf-8").splitlines()
    k, above = 0, ""
    while k < len(lines):
        fence = re.match(r"(`{3,})(.*)$", lines[k])
        if fence:
            end = next(i for i in range(k + 1, len(lines)) if lines[i].strip() == fence[1])
            if not fence[2].startswith("{"):
                comment = re.fullmatch(r"<!-- (.*) -->", above.strip())
                text = "".join(f"{line}\n" for line in lines[k + 1 : end])
                yield Block(fence[2].strip(), text, k + 1, comment[1] if comment else "")
            k = end
        if lines[k].strip():
            above = lines[k]
        k += 1


def indented(page: Path) -> list[int]:
    """Return the lines where something stands indented by four spaces: a block without a language."""
    lines, found, inside = page.read_text(encoding="utf-8").splitlines(), [], False
    for k, line in enumerate(lines):
        inside ^= line.startswith("```")
        if not inside and line.startswith("    ") and (k == 0 or not lines[k - 1].strip()):
            found.append(k + 1)
    return found


def run(page: Path) -> int:
    """Run the blocks of a page one after the other, where one is; return how many were."""
    names: dict[str, Any] = {"__name__": "__main__"}
    done = 0
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.said.startswith("not run: "):
            continue
        if block.said.startswith("file: "):
            Path(block.said[6:]).write_text(block.text, encoding="utf-8")
        elif block.language == "pycon":
            _session(block, names, where)
        elif block.language == "python":
            exec(compile("\n" * block.line + block.text, str(page), "exec"), names)
        elif block.language == "sh":
            _commands(block, where)
        elif block.language == "yaml":
            _checked(block)
        done += 1
    return done


def _session(block: Block, names: dict[str, Any], where: str) -> None:
    test = doctest.DocTestParser().get_doctest(block.text, names, where, where, block.line)
    runner, said = doctest.DocTestRunner(verbose=False), []
    runner.run(test, out=said.append, clear_globs=False)
    names.update(test.globs)
    assert not said, "".join(said)


def _commands(block: Block, where: str) -> None:
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            assert words[0] == "mcplan", f"{where}: {line!r} is not run: say why above the block"
            assert main(words[1:]) == 0, f"{where}: {line}"


def _checked(block: Block) -> None:
    """Load what stands there, laid over a scenario if it is a part of one."""
    page = Path("block.yaml")
    page.write_text(block.text, encoding="utf-8")
    part = read_document(page).data
    if block.said == "part of robot.yaml":
        RobotSection.model_validate({"mcplan": 1, "urdf": "robot.urdf", **part})
        return
    if block.said.startswith("part of: "):
        path = ROOT / "stances" / f"{block.said[9:]}.yaml"
        part = _laid_over(read_document(path).data, part)
    mc.load_scenario(part)


def _laid_over(below: Any, above: Any) -> Any:
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return deepcopy(above)
    return {**below, **{key: _laid_over(below.get(key), value) for key, value in above.items()}}
