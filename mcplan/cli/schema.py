"""Command ``mcplan schema``."""

import json
import sys
from argparse import ArgumentParser, Namespace

from mcplan.cli.options import file_to_write

HELP = "print the JSON Schema of a file format, for editors"

FORMATS = ("scenario", "robot", "experiment")
"""File formats with a schema; the first is the default."""


def declare(parser: ArgumentParser) -> None:
    """Declare the arguments."""
    text = "scenario (also of plans; default), robot (robot.yaml) or experiment"
    parser.add_argument("format", nargs="?", choices=FORMATS, default=FORMATS[0], help=text)
    parser.add_argument("-o", "--output", metavar="FILE", help="write the schema to FILE instead of printing it")
    parser.add_argument("--force", action="store_true", help="write over FILE")


def schema_text(name: str) -> str:
    """Return the JSON Schema of a format."""
    from pydantic import BaseModel

    from mcplan.document.json_schema import json_schema
    from mcplan.robot.robot_schema import RobotSection
    from mcplan.scenario.schema import ScenarioSpec
    from mcplan.sweep.schema import ExperimentSpec

    models: dict[str, type[BaseModel]] = dict(zip(FORMATS, (ScenarioSpec, RobotSection, ExperimentSpec), strict=True))
    schema = json_schema(models[name], f"mcplan {name}", expressions=name == "scenario")
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def run(arguments: Namespace) -> int:
    """Print or write the schema."""
    text = schema_text(arguments.format)
    if arguments.output is None:
        sys.stdout.write(text)
        return 0
    from mcplan.util.files import write_text

    path = file_to_write(arguments.output, arguments.force)
    write_text(path, text)
    print(path)
    return 0
