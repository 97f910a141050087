"""Plans executed by torques alone in the contact physics, with the controller."""

import pytest

from mcplan.certificate.verify import verify
from mcplan.sim.simulate import Simulation, simulate
from tests import shared
from tests.sim.contact.standing import drift, four_contacts


@pytest.fixture(scope="module")
def one_step():
    return shared.planned_up_to("step", "right_sole")


@pytest.mark.parametrize(("name", "added"), [("step", "right_sole"), ("table_hand", "right_hand")])
def test_a_change_of_contact_is_certified(name, added):
    report = verify(simulate(shared.planned_up_to(name, added), "contact"))
    assert report.success, report.text()
    assert report.values["slip"] < 1e-3
    assert report.values["eom_residual"] < 1e-8
    assert report.values["solver_failures"] == 0


def test_the_same_plan_gives_the_same_run_to_the_bit(one_step, tmp_path):
    files = []
    for number in range(2):
        simulation = Simulation(one_step, "contact")
        for _ in range(100):
            simulation.step()
        path = tmp_path / f"run{number}.npz"
        simulation.finish().save(path)
        files.append(path.read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("physics", ["qp", "contact"])
def test_it_stands_on_four_contacts_without_walking_off(physics):
    """Five seconds of what ``python -m tests.sim.contact.standing`` does for a minute."""
    found = drift(simulate(four_contacts(5.0, dt=0.004), physics))
    assert found.contacts < 1e-4
    assert found.com < 1e-3
    assert found.trend < 1e-5
