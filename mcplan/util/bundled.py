"""Names and files of the bundled robots and scenarios, without loading them, for lists and spelling suggestions."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]

ROBOTS = PACKAGE / "robot" / "bundled"
"""Folder of the bundled robots, each in a folder of its own."""


def bundled_robots() -> tuple[str, ...]:
    """Return the names of the robots."""
    return tuple(sorted(file.parent.name for file in ROBOTS.glob("*/robot.yaml")))


def bundled_scenarios() -> dict[str, Path]:
    """Return the files of the scenarios by name."""
    for folder in (PACKAGE / "stances", PACKAGE.parent / "stances"):  # of an installed wheel; of a clone
        if folder.is_dir():
            return {path.stem: path for path in sorted(folder.glob("*.yaml"))}
    return {}


def description_of(path: Path) -> str:
    """Return the ``description`` of a scenario file, without reading the rest; empty if it has none."""
    import yaml

    key, depth = None, 0
    with path.open(encoding="utf-8") as file:
        for event in yaml.parse(file, Loader=yaml.SafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth, key = depth + 1, None
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
            elif isinstance(event, yaml.ScalarEvent) and depth == 1:
                if key == "description":
                    return str(event.value)
                key = event.value if key is None else None
    return ""
