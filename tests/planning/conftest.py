import importlib.util
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def scene():
    spec = importlib.util.spec_from_file_location("planning_scene", Path(__file__).with_name("scene.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
