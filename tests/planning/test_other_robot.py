"""Nothing in the planner is made for HRP-2: another humanoid, and one without arms, walk and climb stairs."""

import importlib.util
from pathlib import Path

import pytest

from mcplan.certificate.verify import verify
from mcplan.planning.plan_file import save_plan
from mcplan.planning.planner import plan
from mcplan.scenario.load import load_scenario


@pytest.fixture(scope="module")
def small():
    spec = importlib.util.spec_from_file_location("small_humanoid", Path(__file__).with_name("small_humanoid.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("arms", [True, False], ids=["arms", "biped"])
@pytest.mark.parametrize("task", ["WALK", "STAIRS", pytest.param("DETOUR", marks=pytest.mark.slow)])
def test_another_robot_finds_its_way(small, arms, task, tmp_path):
    small.write(tmp_path, arms)
    (tmp_path / "task.yaml").write_text(getattr(small, task))
    found = plan(load_scenario(tmp_path / "task.yaml"))
    save_plan(found, tmp_path / "plan.yaml")
    report = verify(tmp_path / "plan.yaml")
    assert report.success, report.failures
    assert all(stance.margins["clearance"] > 0.0 for stance in found.stances[1:])
