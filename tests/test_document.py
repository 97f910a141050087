"""Files: what is read, what is refused, and how it is said."""

import math

import numpy as np
import pydantic
import pytest
from hypothesis import given, settings, strategies as st

from mcplan.document.document import Document, dump_document, inline, read_document
from mcplan.errors import InputError, ScenarioError


class Place(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    xyz: tuple[float, float, float]
    yaw: float = 0.0


class Item(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    name: str
    kind: str = "flat"
    friction: float = pydantic.Field(default=0.7, gt=0)
    place: Place | None = None


class Whole(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")
    count: int = 1
    flag: bool = False
    items: list[Item] = []
    by_name: dict[str, Place] = {}


def write(tmp_path, text, name="file.yaml"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def read(tmp_path, text, **options):
    return read_document(write(tmp_path, text), **options)


def test_scalars_follow_yaml_1_2(tmp_path):
    text = "a: 1e3\nb: on\nc: yes\nd: true\ne: 010\nf: 1_000\ng: 12:30:45\nh: ~\n"
    text += "i: .5\nj: -1.e-2\nk: 0x1F\nl: 0o17\nm: '7'"
    assert read(tmp_path, text).data == {
        "a": 1000.0, "b": "on", "c": "yes", "d": True, "e": 10, "f": "1_000", "g": "12:30:45", "h": None,
        "i": 0.5, "j": -0.01, "k": 31, "l": 15, "m": "7",
    }  # fmt: skip


def test_keys_are_text_whatever_they_look_like(tmp_path):
    assert read(tmp_path, "1: a\ntrue: b\n1.50: c").data == {"1": "a", "true": "b", "1.50": "c"}


def test_lines_of_values(tmp_path):
    document = read(tmp_path, "a: 1\nb:\n  - x: 2\n    y:\n      z: 3\n  - {x: 4}\n")
    assert document.line(("a",)) == 1
    assert document.line(("b", 0, "y", "z")) == 5
    assert document.line(("b", 1, "x")) == 6
    assert document.line(("b", 0, "y", "nothing", "here")) == 4
    problem = document.problem(("b", 1, "x"), "is odd")
    assert str(problem) == f"{document.path}:6: b[1].x: is odd"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("a: 1\nb: [1, 2", 2, "not valid YAML"),
        ("a: 1\nb: &x [*x]", 2, "stands for nothing"),
        ("a: *nowhere", 1, "stands for nothing"),
        ("a: 1\n---\nb: 2", 2, "second document"),
        ("a: !!python/object/apply:os.system [ls]", 1, "tag"),
        ("? [1, 2]\n: 3", 1, "key must be a word"),
        ("a: 1\n\tb: 2", 2, "not valid YAML"),
        (b"a: 1\nb: \xff", 2, "UTF-8"),
        ("a: " + "[" * 200, 1, "nested deeper"),
        ("a: " + "[" * 100_000, 1, "nested deeper|nesting depth"),  # libyaml has a limit of its own
        ("a: &a 1\nb: [" + "*a, " * 300 + "]", 2, "aliases"),
        ("a: \x00", None, "not valid YAML"),
    ],
)
def test_unreadable_files_are_refused_with_their_line(tmp_path, text, line, says):
    with pytest.raises(ScenarioError, match=says) as caught:
        read(tmp_path, text, error=ScenarioError)
    (problem,) = caught.value.problems
    if line is not None:
        assert problem.line == line


def test_a_bomb_of_aliases_is_refused(tmp_path):
    lines = ["a0: &a0 [" + "x, " * 9 + "x]"]
    lines += [f"a{k}: &a{k} [" + f"*a{k - 1}, " * 9 + f"*a{k - 1}]" for k in range(1, 12)]
    with pytest.raises(InputError, match="values once its aliases are expanded"):
        read(tmp_path, "\n".join(lines))


def test_a_text_that_aliases_multiply_counts_by_its_length(tmp_path):
    text = f"a: &a {'x' * 320_000}\n" + "b: &b [" + ", ".join(["*a"] * 40) + "]\nc: [{}]\n"
    assert len(read(tmp_path, text.format("*b")).data["c"][0]) == 40
    with pytest.raises(InputError, match="values once its aliases are expanded") as caught:
        read(tmp_path, text.format(", ".join(["*b"] * 90)))
    assert caught.value.problems[0].line == 3


def test_a_text_of_the_greatest_size_counts_less_than_the_cap(tmp_path):
    assert len(read(tmp_path, f"motion: {'x' * 15_900_000}\n").data["motion"]) == 15_900_000


def test_aliases_of_aliases_are_no_deeper_than_what_is_written_out(tmp_path):
    chain = "a0: &a0 [1]\n" + "".join(f"a{k}: &a{k} [*a{k - 1}]\n" for k in range(1, 100))
    with pytest.raises(InputError, match=r"nested deeper than 32 levels once \*a30 is expanded") as caught:
        read(tmp_path, chain)
    assert caught.value.problems[0].line == 32
    assert read(tmp_path, "\n".join(chain.splitlines()[:31])).data["a1"] == [[1]]


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_document(tmp_path / "nothing.yaml")
    with pytest.raises(InputError, match="is a directory"):
        read_document(tmp_path)


def test_a_name_with_a_null_byte():
    with pytest.raises(ScenarioError, match=r"^'a\\x00\.yaml': cannot be read: embedded null byte$"):
        read_document("a\0.yaml", ScenarioError)


def test_hexadecimal_numbers_that_no_double_holds_are_not_finite(tmp_path):
    text = "".join(f"k{digits}: 0x{'f' * digits}\n" for digits in (255, 256, 258, 298, 299))
    document = read(tmp_path, text, collect=True)
    assert document.data["k255"] == 16**255 - 1
    assert [(problem.line, problem.key) for problem in document.problems] == [
        (2, "k256"), (3, "k258"), (4, "k298"), (5, "k299"),
    ]  # fmt: skip
    assert all(math.isinf(document.data[problem.key]) for problem in document.problems)


def test_a_file_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr("mcplan.document.document.MAX_BYTES", 10)
    with pytest.raises(InputError, match="larger than"):
        read(tmp_path, "a: 123456789")


def test_duplicate_keys_and_non_numbers_are_all_reported(tmp_path):
    text = "a: 1\nb: {c: .nan, d: -.inf}\na: 2\ne: 1e999\n"
    with pytest.raises(InputError) as caught:
        read(tmp_path, text)
    assert [(p.line, p.key) for p in caught.value.problems] == [(2, "b.c"), (2, "b.d"), (3, "a"), (4, "e")]
    document = read(tmp_path, text, collect=True)
    assert len(document.problems) == 4


def test_all_problems_at_once_in_file_order(tmp_path):
    text = """\
count: 2.5
items:
  - {name: floor, frction: 0.7}
  - name: ramp
    friction: -0.1
    place: {xyz: [0, 0], yaw: left}
  - {kind: flat}
flag: on
by_name:
  home: {xyz: [0, 0, 0], yew: 1}
colour: red
"""
    with pytest.raises(ScenarioError) as caught:
        read(tmp_path, text).validate(Whole, ScenarioError)
    said = [(p.line, p.key, p.message) for p in caught.value.problems]
    assert said == [
        (1, "count", "expected a whole number, got 2.5"),
        (3, "items[0].frction", "unknown key; did you mean `friction`?"),
        (5, "items[1].friction", "expected a number > 0, got -0.1"),
        (6, "items[1].place.xyz", "expected 3 items, got [0, 0]"),
        (6, "items[1].place.yaw", "expected a number, got 'left'"),
        (7, "items[2].name", "missing; this key is required"),
        (8, "flag", "expected true or false, got 'on'"),
        (10, "by_name.home.yew", "unknown key; did you mean `yaw`?"),
        (11, "colour", "unknown key; there are: by_name, count, flag, items"),
    ]


def test_problems_of_overrides_come_after_those_of_the_file(tmp_path):
    document = read(tmp_path, "flag: on\nitems: [{name: a, friction: -1}]\n").with_overrides({"count": "many"})
    with pytest.raises(InputError) as caught:
        document.validate(Whole)
    said = [(p.file == "override", p.line, p.key) for p in caught.value.problems]
    assert said == [(False, 1, "flag"), (False, 2, "items[0].friction"), (True, None, "count")]


def test_text_is_no_number_and_true_is_no_number(tmp_path):
    with pytest.raises(InputError) as caught:
        read(tmp_path, "items: [{name: a, friction: '0.5'}, {name: b, friction: true}, {name: 7}]").validate(Whole)
    assert [p.key for p in caught.value.problems] == ["items[0].friction", "items[1].friction", "items[2].name"]


@pytest.mark.parametrize("text", ["", "# only a comment\n", "- a\n- b", "just text"])
def test_files_without_a_mapping(tmp_path, text):
    with pytest.raises(InputError, match=r"empty|key: value"):
        read(tmp_path, text).validate(Whole)


def test_overrides_replace_add_and_leave_the_original(tmp_path):
    document = read(tmp_path, "count: 1\nitems:\n  - {name: floor}\n  - {name: table, friction: 0.5}\n")
    changed = document.with_overrides(
        {"count": 3, "items[table].friction": np.float64(0.9), "items[0].place.xyz": (1, 2, 3), "by_name": {}}
    )
    whole = changed.validate(Whole)
    assert whole.count == 3
    assert whole.items[1].friction == 0.9
    assert whole.items[0].place.xyz == (1, 2, 3)
    assert document.data == {"count": 1, "items": [{"name": "floor"}, {"name": "table", "friction": 0.5}]}
    assert changed.line(("items", 1, "name")) == 4
    assert changed.problem(("count",), "odd").file == "override"


def test_overrides_that_lead_nowhere_are_all_named(tmp_path):
    document = read(tmp_path, "count: 1\nitems: [{name: floor}]")
    beyond = {"items[1].name": "x", "items[3].name": "x", "items[wall].name": "x"}
    wrong = beyond | {"count.x": 1, "a..b": 1, "flag": math.nan, "count[0]": 2}
    with pytest.raises(InputError) as caught:
        document.with_overrides(wrong)
    assert {p.key for p in caught.value.problems} == set(wrong)


def test_values_that_no_file_holds_are_refused_with_their_key():
    with pytest.raises(ScenarioError) as caught:
        Document.of_values({"a": {"b": [1.0, np.array([2.0, np.inf])]}}, ScenarioError)
    assert str(caught.value) == "scenario: a.b[1][1]: inf is not a finite number"
    with pytest.raises(InputError, match=r"override: a\.b\[1\]\.c: nan is not a finite number"):
        Document.of_values({"a": {}}).with_overrides({"a.b": [0, {"c": math.nan}]})


text = st.text(st.characters(codec="utf-8"), max_size=30)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False, allow_infinity=False) | text
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=6) | st.dictionaries(text, inner, max_size=4), max_leaves=30
)


@settings(max_examples=200, deadline=None)
@given(values)
def test_what_is_written_reads_back_as_the_same_values(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("dump", numbered=True) / "file.yaml"
    path.write_text(dump_document({"top": data}), encoding="utf-8")
    read_back = read_document(path).data["top"]
    assert read_back == data
    assert repr(read_back) == repr(data)


def test_long_lists_are_broken_at_the_line_width():
    numbers = list(np.random.default_rng(0).normal(size=60))
    lines = dump_document({"stances": [{"q": numbers, "pose": {"xyz": [0, 0, 1]}}]}).splitlines()
    assert max(map(len, lines)) <= 120
    assert "pose: {xyz: [0, 0, 1]}" in lines[-1]


@pytest.mark.parametrize("value", [math.nan, math.inf, object(), {1: 2}, np.array([np.nan])])
def test_values_without_a_place_in_a_file_are_not_written(value):
    with pytest.raises(ValueError, match=r"finite|cannot stand|not text"):
        dump_document({"a": value})


def test_a_misspelt_key_does_not_hide_the_problems_behind_it(tmp_path):
    class Item(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid")
        size: float

    class File(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="forbid")
        items: tuple[Item, ...]

    file = tmp_path / "file.yaml"
    file.write_text("items:\n  - {sise: 2.0}\n  - {sizze: text}\n")
    instance, problems = read_document(file).examine(File, salvage=True)
    assert instance is None  # the second item has no size that could be used
    assert [problem.line for problem in problems] == [2, 3]
    file.write_text("items:\n  - {sise: 2.0}\n")
    instance, problems = read_document(file).examine(File, salvage=True)
    assert instance == File(items=(Item(size=2.0),))
    assert "did you mean `size`?" in problems[0].message


@pytest.mark.parametrize("value", ["2024", "007", "UR5: left", "a, b", "[a", "#2", "on", "", ["a: b"], {"a, b": 1}])
def test_a_value_in_one_line_reads_back_alone_and_in_brackets(tmp_path, value):
    text = f"alone: {inline(value)}\nwithin: [{inline(value)}, {{key: {inline(value)}}}]\n"
    assert read(tmp_path, text).data == {"alone": value, "within": [value, {"key": value}]}


@pytest.mark.parametrize("name", ["/home/me/robot #2/a.yaml", "/data/my: robot/a.yaml", "hrp2", "2024", "'hrp2'"])
def test_overrides_of_texts_are_taken_as_they_are(tmp_path, name):
    document = read_document(write(tmp_path, "robot: hrp2\n")).with_overrides({"robot": name})
    assert document.data["robot"] == name.strip("'")
