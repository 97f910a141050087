"""The pages hang together, and the tables of keys have every key that the models of the files know."""

import importlib.util
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PIL import Image, ImageSequence
from pydantic import BaseModel

import mcplan as mc
from mcplan.robot.robot_schema import RobotSection
from mcplan.scenario.schema import ScenarioSpec
from mcplan.sweep.schema import ExperimentSpec
from tests import pages

DOCS = pages.ROOT / "docs"
FORMATS = {"scenario": ScenarioSpec, "robot": RobotSection, "experiment": ExperimentSpec}


def extension(name):
    """Import what Sphinx is given of this project."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def schema_keys():
    return extension("schema_keys")


@pytest.fixture(scope="module")
def tables(schema_keys):
    """By format and title of its part: the cells of each key."""
    found = {}
    for name in FORMATS:
        text = schema_keys.expanded((DOCS / "keys" / f"{name}.md").read_text(encoding="utf-8"))
        for part in re.split(r"^\(keys-", text, flags=re.MULTILINE)[1:]:
            rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in part.splitlines() if line.startswith("| `")]
            cells = [[cell.strip() for cell in row] for row in rows]
            found[name, part.split(")=")[0]] = {row[0].strip("`"): row for row in cells}
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_every_key_is_in_the_reference_with_its_default_range_and_words(name, tables, schema_keys):
    """The schema that pydantic itself draws up says which keys there are, not the code that makes the tables."""
    drawn = FORMATS[name].model_json_schema(mode="validation")
    parts = {**drawn["$defs"], FORMATS[name].__name__: drawn}
    shown = {where.rpartition("-")[2]: rows for (of, where), rows in tables.items() if of == name}
    assert {part.lower() for part in parts} == set(shown)
    for part, schema in parts.items():
        rows = shown[part.lower()]
        assert list(rows) == list(schema["properties"]), part
        for key, about in schema["properties"].items():
            _, kind, default, words = rows[key]
            assert len(words) >= 2, f"{part}.{key} is not explained"
            assert kind, f"{part}.{key}"
            assert (default == "required") == (key in schema.get("required", [])), f"{part}.{key}"
            if isinstance(about.get("default"), int | float) and not isinstance(about["default"], bool):
                assert f"`{about['default']}`" == default, f"{part}.{key}"
            for bound in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
                if bound in about:
                    assert f"{about[bound]:g}" in kind, f"{part}.{key}: {bound}"


def test_a_key_without_words_or_range_is_noticed(schema_keys):
    class Silent(BaseModel):
        nothing: int = 3

    Silent.__module__ = __name__
    assert [key.words for key in schema_keys.keys(Silent)] == [""]


def test_a_default_or_a_range_that_changes_changes_the_page(schema_keys):
    (rate,) = [key for key in schema_keys.keys(mc.SimulationSettings) if key.name == "dt"]
    assert rate.default == f"`{mc.SimulationSettings().dt}`"
    assert rate.type == "number > 0, ≤ 0.02"


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and MyST make them, and those that it names itself."""
    text = page.read_text(encoding="utf-8")
    for source in re.findall(r"^```\{include\} (\S+)", text, flags=re.MULTILINE):
        text += (page.parent / source).read_text(encoding="utf-8")
    text = extension("schema_keys").expanded(text)
    titles = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return made | set(re.findall(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE))


@pytest.mark.parametrize("page", pages.pages(), ids=lambda page: str(page.relative_to(pages.ROOT)))
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?://", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


def test_every_page_is_reached_from_the_first():
    listed = re.findall(r"^[\w/-]+$", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    there = {str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md") if "_build" not in page.parts}
    assert set(listed) == there - {"index"}
    assert len(listed) == len(set(listed))


def test_every_public_name_is_in_the_api_reference():
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\.\. auto\w+:: (\S+)$", text, flags=re.MULTILINE))
    for name in {*mc._NAMES} - {"Stance"}:
        assert ".".join(mc._NAMES[name]) in named, name
    for package in mc._PACKAGES:
        for name in getattr(mc, package).__all__:
            thing = getattr(getattr(mc, package), name)
            if isinstance(thing, type) or callable(thing):
                assert f"{thing.__module__}.{name}" in named, name


def test_docstrings_reach_sphinx_with_shapes_as_words_and_equations_as_they_are():
    docstrings = extension("docstrings")
    text = ["Return x.", "", "    a = b", "", "Parameters", "----------", "q, v : (nq,), (nv,) state.", "r : m."]
    blocks = docstrings.with_blocks(text)
    assert blocks[2:5] == ["::", "", "    a = b"]
    assert docstrings.with_meanings(blocks)[-4:] == ["q, v", "    (nq,), (nv,) state.", "r", "    m."]
    heard = {}
    docstrings.setup(SimpleNamespace(connect=lambda event, process, priority: heard.update({event: process})))
    lines = ["Size of ``q``: ``7 + n``."]
    heard["autodoc-process-docstring"](None, "property", "nq", None, None, lines)
    # what stands before a colon in the first line that is not empty would be taken for a type
    assert ":" not in next(line for line in lines if line)
    assert lines[-1] == "Size of ``q``: ``7 + n``."


def test_citation_has_the_present_version():
    cited = re.search(r"^version: (\S+)$", (pages.ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited[1] == mc.__version__


def test_the_readme_is_a_screen_and_a_half():
    assert len(Path(pages.ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 90


@pytest.mark.parametrize("page", ["docs/theory.md", "docs/sources.md", "README.md"])
def test_papers_are_named_with_a_link(page):
    """`Name and Name YEAR`, and the titles in the table of documents."""
    text = (pages.ROOT / page).read_text(encoding="utf-8")
    paper = r"[A-Z]\w+(?:,? (?:and )?[A-Z]\w+)*(?:\s+and\s+others)?\s+(?:19|20)\d\d"
    named = [found for found in re.finditer(paper, text) if not re.search(r"(Humanoids|Technology) \d", found[0])]
    for found in named:
        after = text[found.end() : found.end() + 10]
        assert after.startswith("](http"), found[0]
    for row in re.findall(r"^\| S\d \| .*", text, re.MULTILINE):
        assert "](http" in row, row


@pytest.mark.slow
def test_the_moving_picture_of_the_readme_is_of_this_version():
    """It lasts as long as the run of the command that stands below it, which the text says too."""
    text = (pages.ROOT / "README.md").read_text(encoding="utf-8")
    said = re.search(
        r"!\[[^]]*\]\((?P<picture>\S+\.gif)\)\s+`mcplan run (?P<command>[^`]*)`: (?P<seconds>[\d.]+) s of motion, "
        r"shown at twice its speed",
        text,
    )
    scenario, *options = said["command"].split()
    assert options == ["--physics", "mujoco"]
    run = mc.simulate(mc.load_scenario(scenario, {"simulation.dt": 0.002}), "mujoco")
    duration = len(run) * run.dt
    assert duration == pytest.approx(float(said["seconds"]), abs=0.1)  # another step changes when soles feel the floor
    with Image.open(pages.ROOT / said["picture"]) as picture:
        shown = sum(frame.info["duration"] for frame in ImageSequence.Iterator(picture)) / 1e3
    assert 2.0 * shown == pytest.approx(duration, abs=0.3)  # the last frame stands for a while
