"""Experiment files: what their cases are, and that mistakes are said before anything runs."""

import itertools

import pytest
import trimesh
import yaml

from mcplan.errors import InputError
from mcplan.robot.robot_file import load_robot
from mcplan.scenario.load import find_scenario, load_scenario
from mcplan.sweep import case as identity
from mcplan.sweep.columns import COLUMNS
from mcplan.sweep.experiment import load_experiment
from tests.pages import ROOT
from tests.sim.waving_box import write_robot


def messages(file, **options):
    with pytest.raises(InputError) as caught:
        load_experiment(file, **options)
    return str(caught.value)


def test_cases_are_the_product_of_scenarios_grid_zip_cases_and_seeds(experiment_file):
    experiment = load_experiment(
        experiment_file(
            "scenarios: [sway, step]\n"
            "set: {simulation.dt: 0.002}\n"
            "grid: {environment.friction: [0.4, 0.6], control.solver: [DAQP, OSQP]}\n"
            "zip: {control.gains.com_kp: [30, 60], control.weights.com: [10, 100]}\n"
            "cases: [{control.gains.limb_kp: 100}, {control.gains.limb_kp: 400, control.weights.limb: 50}]\n"
            "seeds: {from: 5, count: 3}\n"
        )
    )
    cases = experiment.cases
    assert len(experiment) == len(cases) == 2 * 4 * 2 * 2 * 3
    assert len({case.id for case in cases}) == len(cases)
    seen = {
        (c.scenario, *(c.overrides[key] for key in (
            "environment.friction", "control.solver", "control.gains.com_kp", "control.gains.limb_kp"
        )), c.seed) for c in cases
    }  # fmt: skip
    expected = itertools.product(["sway", "step"], [0.4, 0.6], ["DAQP", "OSQP"], [30, 60], [100, 400], [5, 6, 7])
    assert seen == set(expected)
    for case in cases:
        data = case.document().data
        assert data["simulation"]["dt"] == 0.002
        assert data["control"]["weights"]["com"] == {30: 10, 60: 100}[data["control"]["gains"]["com_kp"]]
        assert ("limb" in data["control"]["weights"]) == (data["control"]["gains"]["limb_kp"] == 400)
        assert "simulation.dt" not in case.fields


def test_where_leaves_cases_out_and_they_are_not_checked(experiment_file):
    text = (
        "scenarios: [walk, lean]\ngrid: {robot: [hrp2, go2], environment.friction: [0.6, 0.7, 0.8]}\n"
        'where: (scenario == "walk" or robot == "hrp2") and not (robot == "go2" and environment.friction < 0.75)\n'
        "seeds: {from: 5, count: 2}\n"
    )
    experiment = load_experiment(experiment_file(text))
    found = [(c.scenario, c.overrides["robot"], c.overrides["environment.friction"]) for c in experiment.cases[::2]]
    hrp2 = [("hrp2", friction) for friction in (0.6, 0.7, 0.8)]
    assert found == [("walk", *each) for each in [*hrp2, ("go2", 0.8)]] + [("lean", *each) for each in hrp2]
    assert len(experiment) == len(experiment.cases) == 14


def test_every_value_of_what_where_leaves_is_checked(experiment_file):
    """The third friction stands with no other value of the solver than the second."""
    text = (
        "scenarios: [walk]\ngrid: {control.solver: [DAQP, OSQP], environment.friction: [0.6, 0.7, -1]}\n"
        'where: control.solver == "OSQP" or environment.friction > 0\n'
    )
    assert "friction" in messages(experiment_file(text))
    load_experiment(experiment_file(text.replace('control.solver == "OSQP" or ', "")))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("color == 1", "where: 'color == 1': unknown name `color`"),
        ("seed < 3", "unknown name `seed`"),
        ('scenario == "walk"', "scenarios[1]: lean: `where` leaves none of its cases"),
        ("scenario ==", "is not a condition"),
    ],
)
def test_a_where_that_says_nothing_is_refused(experiment_file, where, said):
    text = f"scenarios: [walk, lean]\ngrid: {{environment.friction: [0.6, 0.7]}}\nwhere: {where}\n"
    assert said in messages(experiment_file(text))


def test_more_combinations_than_can_be_sifted_are_refused(experiment_file):
    axes = ", ".join(f"control.solver{k}: {list(range(101))}" for k in range(3))
    message = messages(experiment_file(f"scenarios: [walk]\ngrid: {{{axes}}}\nwhere: scenario == 'walk'\n"))
    assert "1,030,301 combinations to choose from, more than 1,000,000" in message


def test_the_seed_draws_the_variant(experiment_file):
    text = "scenarios: [walk]\nseeds: [0, 1]\nvariants: "
    first, second = load_experiment(experiment_file(text + "true")).cases
    assert first.document().data["variant"]["seed"] == 0
    assert first.document().data["goal"] != second.document().data["goal"]
    first, second = load_experiment(experiment_file(text + "false")).cases
    assert first.document().data == second.document().data
    assert first.id != second.id


def test_a_case_is_what_its_values_are_wherever_they_stand(experiment_file):
    (a,) = load_experiment(experiment_file("scenarios: [walk]\nset: {parameters.distance: 1.2}\n")).cases
    (b,) = load_experiment(experiment_file("scenarios: [walk]\ngrid: {parameters.distance: [1.2]}\n")).cases
    (c,) = load_experiment(experiment_file("scenarios: [walk]\ngrid: {parameters.distance: [1.3]}\n")).cases
    assert a.id == b.id
    assert a.id != c.id


def test_another_code_is_another_case_of_the_same_configuration(experiment_file, monkeypatch):
    file = experiment_file("scenarios: [sway]\n")
    (before,) = load_experiment(file).cases
    identity, configuration = before.id, before.configuration
    monkeypatch.setattr("mcplan.sweep.case.code_version", lambda: "another")
    (after,) = load_experiment(file).cases
    assert after.id != identity
    assert after.configuration == configuration


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("scenarios: [sway]\ngird: {control.gains.com_kp: [1]}\n", 4, "did you mean `grid`"),
        ("scenarios: []\n", 3, "at least 1 item"),
        ("scenarios: [no_such]\n", 3, "there is no scenario `no_such`"),
        ("scenarios: [stares]\n", 3, "did you mean `stairs`"),
        ("scenarios: [sway, sway]\n", 3, "listed twice"),
        ("scenarios: [sway, mine/sway.yaml]\n", 3, "`mine/sway.yaml` is called `sway` in tables, as number 1 is"),
        ("scenarios: [sway]\ngrid:\n  environment.friction: []\n", 5, "at least 1 item"),
        ("scenarios: [sway]\ngrid:\n  enviroment.friction: [0.4]\n", 5, "did you mean `environment`"),
        ("scenarios: [sway]\ngrid:\n  environment.friktion: [0.4]\n", 5, "did you mean `friction`"),
        ("scenarios: [sway]\ngrid:\n  environment.friction: [0.4, -1]\n", 5, "expected a number >= 0"),
        ("scenarios: [sway]\ngrid:\n  environment.friction: [0.4, 0.4]\n", 5, "the same as number 1"),
        ("scenarios: [sway]\ngrid:\n  environment.surfaces[table].friction: [0.4]\n", 5, "no item of that name"),
        ("scenarios: [sway]\nset:\n  simulation.physics: bullet\n", 5, "qp, contact or mujoco"),
        ("scenarios: [sway]\nset: {control.rate: 500}\ngrid:\n  control.rate: [250]\n", 6, "also in `set`"),
        ("scenarios: [sway]\nzip:\n  control.rate: [500, 250]\n  control.duration: [2]\n", None, "equally long"),
        ("scenarios: [sway]\ncases:\n  - {control.rate: 5}\n  - {control.gains.com_kq: 1}\n", 6, "you mean `com_kp`"),
        ("scenarios: [sway]\nvariants: true\n", 3, "has no section `variants`"),
        ("scenarios: [sway]\nseeds: [1, 1]\n", 4, "listed twice"),
        ("scenarios: [sway]\ncollect: [sucess]\n", 4, "did you mean `success`"),
        ("scenarios: [sway]\nfigures:\n  - {x: seed, y: succes}\n", 5, "did you mean `success`"),
        ("scenarios: [sway]\ntables:\n  - {rows: [scenario], values: [node]}\n", 5, "did you mean `nodes`"),
        ("scenarios: [sway]\nexpect: {success: often}\n", 4, "expected a threshold"),
        ("scenarios: [sway]\ngrid:\n  control.gains.com_kp: [1, 1.0]\n", 5, "the same as number 1"),
        ("scenarios: [sway]\nexpect: {stage: '== 0'}\n", 4, "`stage` is a text; expected a number or a flag"),
        ("scenarios: [sway]\nfigures:\n  - {x: seed, y: stage}\n", 5, "`stage` is a text"),
        ("scenarios: [sway]\nfigures:\n  - {x: seed, y: scenario, value: cause}\n", 5, "`cause` is a text"),
        ("scenarios: [sway]\ncollect: [seed]\n", 4, "names no result"),
        ("scenarios: [sway]\nset:\n  simulation.joint_friction: 0.1\n", 5, "needs physics contact or mujoco"),
        ("scenarios: [sway]\nexpect:\n  - {where: 'sed < 3', columns: {success: '>= 1'}}\n", 5, "did you mean `seed`"),
    ],
)
def test_a_mistake_is_said_with_its_line(text, line, said, experiment_file):
    file = experiment_file(text)
    message = messages(file)
    assert said in message
    if line is not None:
        assert f"{file}:{line}: " in message


def test_whole_numbers_beyond_floating_point_are_compared_as_they_are():
    values = {"control.gains.com_kp": [2, 10**400, 10**400]}
    with pytest.raises(InputError, match="the same as number 2"):
        load_experiment({"mcplan": 1, "name": "trial", "scenarios": ["sway"], "grid": values})


def test_packages_matter_where_cases_run_and_only_to_what_is_simulated(experiment_file, monkeypatch):
    monkeypatch.setattr("mcplan.sim.simulate.find_spec", lambda name: None)
    monkeypatch.setattr("mcplan.whole_body.settings.find_spec", lambda name: None)
    text = "scenarios: [sway]\nset:\n  simulation.physics: mujoco\n  control.solver: PIQP\n"
    said = messages(experiment_file(text))
    assert "trial.yaml:5: set.simulation.physics: sway: simulation.physics: physics mujoco needs the package" in said
    load_experiment(experiment_file(text), elsewhere=True)
    load_experiment(experiment_file(f"{text}steps: plan\n"))
    wrong = text.replace("mujoco", "qp") + "  simulation.joint_friction: 0.1\n"
    with pytest.raises(InputError, match="joint_friction: needs physics contact or mujoco"):
        load_experiment(experiment_file(wrong), elsewhere=True)


def test_every_mistake_is_said_at_once(experiment_file):
    text = "scenarios: [sway, no_such]\ngrid:\n  control.gains.q: [1]\n  simulation.dt: [0.001, 1]\ncollect: [sucess]\n"
    message = messages(experiment_file(text))
    assert [line.split(":")[1] for line in message.splitlines()] == ["3", "5", "6", "7"]


def test_a_condition_that_cannot_be_read_hides_no_other_mistake(experiment_file):
    """Values are not tried: which of them a scenario is given is what the condition would say."""
    text = "seed: 1\nwhere: seed <\nscenarios: [swya, sway]\nset: {control.gains.com_kq: 1}\nexpect: {succes: '>= 1'}\n"
    said = [line.split(":")[1] for line in messages(experiment_file(text)).splitlines()]
    assert said == ["3", "4", "5", "7"]


def test_a_million_cases_have_to_be_confirmed(experiment_file):
    file = experiment_file("scenarios: [sway]\nseeds: {count: 1000000}\n")
    message = messages(file)
    assert "1,000,000 cases" in message
    assert "--max-cases 1000000" in message
    assert "1,000,000 cases" in messages(file, max_cases=999_999)
    assert len(load_experiment(file, max_cases=1_000_000)) == 1_000_000


def test_a_scenario_of_ones_own_is_found_beside_the_experiment(experiment_file, tmp_path):
    (tmp_path / "mine.yaml").write_text(find_scenario("sway").read_text())
    (case,) = load_experiment(experiment_file("scenarios: [mine.yaml]\n")).cases
    assert case.scenario == "mine"


def test_another_mesh_around_the_robot_is_another_case(experiment_file, tmp_path):
    rock = "environment:\n  obstacles: [{name: rock, mesh: {file: rock.off}, pose: {xyz: [3, 0, 0]}}]\n"
    (tmp_path / "mine.yaml").write_text(find_scenario("sway").read_text().replace("environment:\n", rock))
    tetrahedron = "OFF\n4 4 6\n0 0 0\n1 0 0\n0 1 0\n0 0 %d\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 2 0 3\n"
    ids = []
    for height in (1, 1, 2):
        (tmp_path / "rock.off").write_text(tetrahedron % height)
        (case,) = load_experiment(experiment_file("scenarios: [mine.yaml]\n")).cases
        ids.append(case.id)
    assert ids[0] == ids[1] != ids[2]


def test_another_mesh_of_the_robot_is_another_case(experiment_file, tmp_path):
    robot = write_robot(tmp_path)
    urdf = tmp_path / "waving_box.urdf"
    shapes = "".join(
        f'<{role}><geometry><mesh filename="{role}.stl"/></geometry></{role}>' for role in ("visual", "collision")
    )
    urdf.write_text(urdf.read_text().replace('<link name="box">', f'<link name="box">{shapes}'))
    (tmp_path / "mine.yaml").write_text(
        "mcplan: 1\nname: mine\nrobot: robot.yaml\nenvironment: {surfaces: [{name: floor, size: [4, 4]}]}\n"
        "start: {contacts: [{patch: sole, surface: floor, x: 0, y: 0}]}\ngoal: {com: [0, 0, 1]}\n"
    )

    def case(collision, visual=0.1):
        trimesh.creation.box((0.2, 0.2, collision)).export(tmp_path / "collision.stl")
        trimesh.creation.box((0.2, 0.2, visual)).export(tmp_path / "visual.stl")
        (found,) = load_experiment(experiment_file("scenarios: [mine.yaml]\nsteps: plan\n")).cases
        return found, load_robot(robot).digest

    (first, digest), (again, _), (other, same) = case(0.1), case(0.1), case(0.12)
    assert first.id == again.id
    assert digest == same, "URDF and robot.yaml are as before"
    assert other.robot != first.robot
    assert other.configuration != first.configuration
    assert case(0.1, visual=0.2)[0].id == first.id, "nothing depends on what is only seen"


@pytest.mark.parametrize(
    "world",
    [
        '<robot name="w"><link name="l"><collision><geometry><mesh filename="rock.stl"/></geometry></collision></link>'
        "</robot>",
        '<sdf version="1.6"><model name="m"><static>true</static><link name="l"><collision name="c"><geometry><mesh>'
        "<uri>rock.stl</uri></mesh></geometry></collision></link></model></sdf>",
        '<mujoco><asset><mesh name="m" file="rock.stl"/></asset>'
        '<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>',
    ],
    ids=["urdf", "sdf", "mjcf"],
)
def test_a_world_with_another_mesh_is_another_case(experiment_file, tmp_path, world):
    (tmp_path / "world.xml").write_text(world)
    (tmp_path / "mine.yaml").write_text(
        find_scenario("sway").read_text().replace("environment:\n", "environment:\n  mesh: world.xml\n")
    )
    ids = []
    for height in (1.0, 1.0, 1.25):
        trimesh.creation.box((2.0, 2.0, height)).export(tmp_path / "rock.stl")
        (case,) = load_experiment(experiment_file("scenarios: [mine.yaml]\n")).cases
        ids.append(case.id)
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(("given", "expected"), [("4711", [4711, 4712, 4713]), ("70:2", [70, 71])])
def test_the_seeds_of_the_command_line_take_the_place_of_the_files(experiment_file, given, expected):
    for written in ("{from: 5, count: 3}", "[7, 8, 9]"):
        experiment = load_experiment(experiment_file(f"scenarios: [sway]\nseeds: {written}\n"), seeds=given)
        assert [case.seed for case in experiment.cases] == expected


@pytest.mark.parametrize("seeds", ["3", "null", "{count: ten}", "{from: 2}"])
def test_seeds_of_the_file_that_are_none_are_said_whatever_the_command_line_gives(experiment_file, seeds):
    file = experiment_file(f"scenarios: [sway]\nseeds: {seeds}\n")
    assert f"{file}:4: seeds" in messages(file, seeds="4711")


@pytest.mark.parametrize("given", ["", "a", "-1", "3:", "3:0", "3:x"])
def test_seeds_that_are_none_are_bad_input(experiment_file, given):
    with pytest.raises(InputError, match="expected FROM or FROM:COUNT"):
        load_experiment(experiment_file("scenarios: [sway]\n"), seeds=given)


def test_a_range_of_seeds_says_from_where(experiment_file):
    assert "did you mean `from`" in messages(experiment_file("scenarios: [sway]\nseeds: {form: 5, count: 3}\n"))
    assert load_experiment(experiment_file("scenarios: [sway]\nseeds: {count: 2}\n")).cases[0].seed == 0


@pytest.mark.parametrize("asked", ["", "set: {simulation.physics: mujoco}\n", "set: {simulation.dt: 0.002}\n"])
@pytest.mark.parametrize("own", ["", "simulation: {physics: contact}\n"])
def test_a_case_names_the_back_end_in_which_its_scenario_runs(experiment_file, tmp_path, asked, own):
    text = find_scenario("sway").read_text()
    assert "simulation:" not in text
    (tmp_path / "own.yaml").write_text(text + own)
    (case,) = load_experiment(experiment_file(f"scenarios: [own.yaml]\n{asked}")).cases
    assert case.physics == load_scenario(tmp_path / "own.yaml", case.overrides).simulation.physics


def test_the_version_of_the_code_is_that_of_all_that_results_depend_on(tmp_path, monkeypatch):
    monkeypatch.setattr(identity, "__file__", str(tmp_path / "sweep" / "identity.py"))
    counts = ("record/run.py", "sim/contact/deep/law.py", "util/back_ends.py", "sweep/job.py")
    others = ("view/page.py", "sim/notes.txt", "cli/main.py", "sweep/store.py")
    files = [tmp_path / name for name in (*counts, *others)]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
    versions = [identity.code_version.__wrapped__()]
    for file in files:
        file.write_text("2")
        versions.append(identity.code_version.__wrapped__())
    changed = [one != other for one, other in itertools.pairwise(versions)]
    assert changed == [True] * len(counts) + [False] * len(others)


OF_A_PLAN = {name for name in COLUMNS if name.startswith("plan_")}
OF_A_PLAN |= {"planned", "certified", "stances", "nodes", "posture_calls"}


@pytest.mark.parametrize("file", sorted((ROOT / "experiments").glob("*.yaml")), ids=lambda file: file.stem)
def test_one_plan_of_several_runs_counts_once_and_a_run_that_stopped_has_no_duration(file):
    experiment = yaml.safe_load(file.read_text())
    shared = [name for name in experiment.get("grid", {}) if name.startswith("simulation.")]
    for part in (*experiment.get("tables", ()), *experiment.get("figures", ())):
        where, apart = part.get("where", ""), [*part.get("rows", ())]
        whole, split = {*part.get("values", ())}, {*part.get("each", ()), part.get("value", part.get("y"))}
        for shown, by in ((whole, apart), (split, [*apart, part.get("by"), part.get("x")])):
            if shown & OF_A_PLAN:
                assert all(name in where or name in by for name in shared), part
        if "duration" in whole | split:
            assert "success" in where, part
