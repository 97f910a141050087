import importlib.util
from pathlib import Path

import pytest

from mcplan.robot.robot_file import load_robot
from tests.planning.small_humanoid import write_telescopic


@pytest.fixture(scope="session")
def telescopic(tmp_path_factory):
    """The small humanoid with slides in its legs."""
    directory = tmp_path_factory.mktemp("telescopic")
    write_telescopic(directory)
    return load_robot(directory / "robot.yaml")


@pytest.fixture(scope="session")
def scene():
    spec = importlib.util.spec_from_file_location("planning_scene", Path(__file__).with_name("scene.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
