"""The changelog stays a list of release notes."""

import re
from pathlib import Path

from mcplan.version import __version__

LINES = (Path(__file__).parents[1] / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
HEADINGS = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_each_release_has_the_headings_of_keep_a_changelog_and_one_line_an_entry():
    first = LINES.index("## [Unreleased]")
    for line in filter(None, LINES[first:]):
        release = re.fullmatch(r"## \[(Unreleased|\d+\.\d+\.\d+)\]( - \d{4}-\d\d-\d\d)?", line)
        heading = line.startswith("### ") and line[4:] in HEADINGS
        entry = re.fullmatch(r"- \S.{,71}", line)
        assert release or heading or entry, line


def test_the_version_of_the_package_has_its_notes():
    assert any(line.startswith(f"## [{__version__}]") for line in LINES)
