"""What the README and the pages of docs/ tell people to type works as it stands there."""

import pytest

from tests import pages

PAGES = {str(page.relative_to(pages.ROOT)): page for page in pages.pages()}
SLOW = {name for name, page in PAGES.items() if any("slow" in block.said for block in pages.blocks(page))}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in PAGES])
def test_what_a_page_shows_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = list(pages.blocks(PAGES[name]))
    skipped = [block for block in shown if block.said.startswith("not run: ")]
    assert pages.run(PAGES[name]) == len(shown) - len(skipped)


@pytest.mark.parametrize("name", PAGES)
def test_every_block_has_a_language_that_a_test_knows(name):
    """Something indented, or in an unknown language, would not be run and not be missed."""
    assert pages.indented(PAGES[name]) == []
    for block in pages.blocks(PAGES[name]):
        assert block.language in pages.LANGUAGES, f"{name}:{block.line}"
        assert block.language != "text" or not block.said, f"{name}:{block.line}: text is not run anyway"
        if block.said.startswith("not run"):
            assert len(block.said) > 20, f"{name}:{block.line}: why not?"


@pytest.mark.parametrize(("text", "wrong"), [
    ("```python\nassert 1 + 1 == 3\n```", AssertionError),
    ("```pycon\n>>> 1 + 1\n3\n```", AssertionError),
    ("```sh\nmcplan info nothing\n```", AssertionError),
    ("<!-- part of: walk -->\n```yaml\nplanner: {max_noodles: 3}\n```", Exception),
])  # fmt: skip
def test_a_page_that_is_wrong_fails(text, wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text(text)
    with pytest.raises(wrong):
        pages.run(tmp_path / "page.md")
