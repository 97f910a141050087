"""Display of runs, plans, scenarios and robots from Python: in a notebook cell or a browser."""

import html
import tempfile
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mcplan.certificate.report import Report
from mcplan.errors import InputError
from mcplan.planning.plan import Plan
from mcplan.record.run import Run
from mcplan.robot.robot import Robot
from mcplan.scenario.scenario import Scenario
from mcplan.scene.contact import Contact
from mcplan.scene.environment import Environment
from mcplan.util.arguments import check_each, describe
from mcplan.util.bars import in_notebook
from mcplan.util.files import write_text
from mcplan.view.film import Film, contact_heights
from mcplan.view.page import Page
from mcplan.view.plan_replay import plan_page
from mcplan.view.replay import replay_page


class Shown:
    """Page made by `show`: notebooks display it; ``text`` is its HTML, ``path`` its file, if any."""

    def __init__(self, text: str, height: int, path: Path | None):
        self.text, self.height, self.path = text, height, path

    def __repr__(self) -> str:
        return f"Shown({len(self.text) / 1e6:.1f} MB of HTML{f', {self.path}' if self.path else ''})"

    def _repr_html_(self) -> str:
        """Return the page in an iframe, so that its style stays inside."""
        source = html.escape(self.text, quote=True)
        return f'<iframe srcdoc="{source}" style="width:100%;height:{self.height}px;border:0"></iframe>'


def show(
    what: Run | Plan | Scenario | Robot,
    q: np.ndarray | None = None,
    *,
    contacts: Sequence[Contact] = (),
    environment: Environment | None = None,
    report: Report | None = None,
    height: int = 600,
) -> Shown:
    """Show a run, a plan, a scenario at its start, or a robot.

    In a notebook the page appears below the cell; from a script it is written to a temporary file, which the browser
    opens.

    Parameters
    ----------
    what : Run, Plan, Scenario or Robot.
    q : (nq,) posture of a robot; its ``half_sitting`` or neutral one by default.
    contacts : of a robot: each a Contact (`mcplan.contact`); drawn with their support region.
    environment : around a robot.
    report : certificate of a run or plan (`mcplan.verify`); without it the page says "not verified".
    height : of the frame in a notebook, pixels.

    Raises
    ------
    InputError
        ``what`` is of another type, or ``q`` does not fit the robot.
    """
    page = Shown(page_text(what, q, contacts, environment, report), height, None)
    if not in_notebook():
        with tempfile.NamedTemporaryFile(prefix="mcplan-", suffix=".html", delete=False) as file:
            page.path = Path(file.name)
        write_text(page.path, page.text)
        webbrowser.open(page.path.as_uri())
    return page


def page_text(
    what: object,
    q: np.ndarray | None = None,
    contacts: Sequence[Contact] = (),
    environment: Environment | None = None,
    certificate: Report | None = None,
    where: str = "show",
) -> str:
    """Return the page as HTML; ``where`` names the calling function in messages."""
    if not isinstance(what, Robot) and (q is not None or contacts or environment is not None):
        raise InputError("show: q, contacts and environment are for a robot; a run, plan or scenario has its own")
    match what:
        case Run():
            return replay_page(what, certificate)
        case Plan():
            return plan_page(what, certificate=certificate)
        case Scenario():
            return posture_page(what.robot, what.start.q, what.environment, what.start.contacts, what.name)
        case Robot():
            name = "half_sitting" if "half_sitting" in what.postures else None
            default = what.neutral() if name is None else what.posture(name)
            touching = check_each(where, "contacts", contacts, Contact)
            return posture_page(what, default if q is None else q, environment, touching, what.name)
    raise InputError(f"{where}: expected a Run, Plan, Scenario or Robot, not {describe(what)}")


def posture_page(
    robot: Robot,
    q: np.ndarray,
    environment: Environment | None = None,
    contacts: Sequence[Contact] = (),
    title: str = "posture",
) -> str:
    """Return one posture (nq,) as the text of an HTML page."""
    q = np.asarray(q, float)
    if q.shape != (robot.nq,):
        raise InputError(f"q has the shape {q.shape}; {robot.name} has ({robot.nq},)")
    points = np.vstack([contact.world_points for contact in contacts] or [robot.com(q)[None] * [1, 1, 0]])
    film = Film(
        robot=robot,
        environment=environment or Environment(),
        times=np.array([0.0, 1.0]),
        q=np.array([q, q]),
        com=np.array([robot.com(q)] * 2),
        ground=contact_heights([points, points]),
        touching={contact.patch: np.array([True, True]) for contact in contacts},
        carrying=[tuple(contacts)] * 2,
    )
    return Page(title, film.draw(), [], 0.0).text()
