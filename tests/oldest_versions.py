"""Constraints of pip for the oldest versions that pyproject.toml allows: python -m tests.oldest_versions > FILE."""

import re
import tomllib
from pathlib import Path


def oldest_versions() -> list[str]:
    """List ``name==version`` for the lower bound of each dependency that users install."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = [wanted for extra, wanted in project["optional-dependencies"].items() if extra not in ("test", "docs")]
    found = [re.match(r"([\w-]+)>=([\d.]+)", text) for group in (project["dependencies"], *extras) for text in group]
    return [f"{match[1]}=={match[2]}" for match in found if match]


if __name__ == "__main__":
    print("\n".join(oldest_versions()))
