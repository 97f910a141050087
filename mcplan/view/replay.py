"""Replay of a run: robot, environment, contacts, forces, centre of mass and support region over time."""

from typing import Any

import numpy as np

from mcplan.analysis.readings import Readings
from mcplan.certificate.report import Report
from mcplan.record.run import Run
from mcplan.record.world import with_imperfections
from mcplan.view.drawing import Drawing
from mcplan.view.film import Film, PatchForce, contact_heights
from mcplan.view.page import Page, band_items, certificate_data
from mcplan.view.palette import phase_bands
from mcplan.view.readings import run_charts
from mcplan.view.robot import robot_to_draw, run_ghost

MIN_TRAIL_LENGTH_M = 0.03
"""Shorter paths through the air are not drawn (m)."""


def replay_page(run: Run, certificate: Report | None = None, readings: Readings | None = None) -> str:
    """Return the replay of ``run`` as one HTML page, with its certificate if given.

    Parameters
    ----------
    readings : readings of the run, if already computed.
    """
    return run_page(run, certificate, readings).text()


def run_page(run: Run, certificate: Report | None = None, readings: Readings | None = None) -> Page:
    """Return the page of a run."""
    bands = phase_bands(run)
    return Page(
        title=run.scenario.name,
        drawing=replay(run),
        bands=band_items(bands),
        duration=float(run.t[-1] - run.t[0]),
        readings=run_charts(readings or Readings(run)),
        certificate=certificate_data(certificate),
        ghost=run_ghost(run, bands),
        plan=_stances(run),
    )


def _stances(run: Run) -> list[dict[str, Any]]:
    """Return the stances of the plan with the time when the motion to each begins; None if it never began."""
    targets = np.array([-1 if phase.stance is None else phase.stance for phase in run.record.phases])[run.phase]
    items = []
    for k, stance in enumerate(run.plan.stances):
        samples = np.flatnonzero(targets == k)
        push = stance.margins.get("equilibrium")
        items.append(
            {
                "name": f"{k} {stance.title}",
                "margin": "" if push is None else f"push {push:.0f} N",
                "t": float(run.t[samples[0]] - run.t[0]) if len(samples) else None,
            }
        )
    return items


def replay(run: Run, frames_per_second: float = 30.0) -> Drawing:
    """Draw a run, resampled to ``frames_per_second``."""
    duration = float(run.t[-1] - run.t[0])
    times = np.append(np.arange(0.0, duration, 1.0 / frames_per_second), duration)
    frames = np.minimum(np.searchsorted(run.t, run.t[0] + times - 1e-9), len(run) - 1)
    film = Film(
        robot=robot_to_draw(run),
        environment=with_imperfections(run.scenario.environment, run.record.world),
        times=times,
        q=run.q[frames],
        com=run.com[frames],
        ground=contact_heights([run.point_xyz[run.points(k)] for k in frames]),
        touching={name: run.active[frames, column] for column, name in enumerate(run.patches)},
        carrying=[run.contacts(int(k)) for k in frames],
        forces={name: _force(run, column, frames) for column, name in enumerate(run.patches)},
        trails=[trail for column in range(len(run.patches)) for trail in _trails(run, column, frames)],
        object_q=None if run.object_q is None else run.object_q[frames],
    )
    return film.draw()


def _force(run: Run, column: int, frames: np.ndarray) -> PatchForce:
    """Return the force of one patch, its cone, and its point: the mean of the contact points weighted by force."""
    place, force, normal = (np.zeros((len(frames), 3)) for _ in range(3))
    friction = run.patch_friction(run.patches[column])[frames]
    for row, k in enumerate(frames):
        points = run.points(k)
        on_patch = run.point_patch[points] == column
        force[row] = run.wrench[k, column, :3]
        weight = np.linalg.norm(run.point_force[points][on_patch], axis=1)
        if weight.sum() > 1e-9:
            place[row] = weight @ run.point_xyz[points][on_patch] / weight.sum()
            if np.isfinite(friction[row]):
                normal[row] = run.point_normal[points][on_patch][0]
        elif row:
            place[row] = place[row - 1]
    return PatchForce(place, force, normal, friction)


def _trails(run: Run, column: int, frames: np.ndarray) -> list[np.ndarray]:
    """Return the paths (points, 3) of a patch through the air, each between two contacts."""
    name, active = run.patches[column], run.active[frames, column]
    edges = np.flatnonzero(np.diff(np.concatenate([[True], active, [True]]).astype(int)))
    trails = []
    for begin, end in zip(edges[::2], edges[1::2], strict=True):
        if begin == 0 or end == len(frames):
            continue  # before the first contact or after the last one
        rows = frames[begin - 1 : end + 1]
        path = run.robot.frame_pose(run.q[rows], name)[:, :3, 3]
        steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
        path = path[np.concatenate([[True], steps > 1e-4])]
        if steps.sum() > MIN_TRAIL_LENGTH_M and len(path) > 2:
            trails.append(path)
    return trails
