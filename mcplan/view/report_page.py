"""Report of a run: one offline HTML page with result, closest calls, replay, charts and certificate."""

import html
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mcplan.analysis.closest_calls import TIME_PATTERN, ClosestCall, closest_calls
from mcplan.analysis.pace import PaceOfRun, limits_text
from mcplan.analysis.readings import Readings
from mcplan.analysis.slowest_tick import PART_LABELS, slowest_ticks, steps_per_tick
from mcplan.certificate.report import Check, Report
from mcplan.planning.search.tree import SearchTree
from mcplan.record.run import Run
from mcplan.scenario.scenario import Scenario
from mcplan.view.page import band_items, fill_template
from mcplan.view.palette import phase_bands
from mcplan.view.plan_replay import margin_labels, tree_page
from mcplan.view.readings import run_charts
from mcplan.view.replay import replay_page

STYLES = ("theme.css", "report.css")
SCRIPTS = ("element.js", "charts.js", "report.js")
"""Style sheets and scripts (files of `web`) of the report."""

NUMBER_WITH_UNIT = re.compile(r"[-+]?\d[\d.,]*(e[-+]?\d+)? ?(%|[^\s\d]\S{0,3})?")
"""A number with an optional unit."""

CRITERIA_NOTE = (
    "<p class='note'>A phase ends when all criteria listed here hold. <i>time</i>: the planned duration has passed; "
    "<i>error</i>: com (the centre of mass) or a patch is close to its reference; <i>speed</i>: it, or every joint, "
    "is slow; <i>unloaded</i>: the patch carries almost no load; <i>force</i>: it has reached its touchdown force; "
    "<i>above</i>: it is above its target; <i>timeout</i>: the criteria did not hold in time.</p>"
)
"""Explanation of the labels of criteria (`mcplan.control.criteria`)."""

NEAR_LIMIT = 0.9
"""Share of a limit above which a closest call is marked."""


def report_page(run: Run, certificate: Report, replay: str | None = None, readings: Readings | None = None) -> str:
    """Return the report of a run as one HTML page.

    Parameters
    ----------
    certificate : certificate of the run (`mcplan.verify`).
    replay : the replay page (`view.replay`) to embed, if already made.
    readings : readings of the run, if already computed.
    """
    readings = readings or Readings(run)
    bands = band_items(phase_bands(run))
    duration = max(float(run.t[-1] - run.t[0]), run.dt)
    data = {"readings": run_charts(readings), "bands": bands, "duration": duration}
    robot = run.record.robot.name
    about = f"{robot}, physics {run.record.physics}, step {1e3 * run.dt:g} ms, seed {run.record.seed}"
    body = [
        f"<h1>{_text(run.scenario.name)}</h1>",
        f'<p class="about">{_text(about)}, mcplan {_text(run.record.mcplan)}</p>',
        _result_box(result_sentence(run, certificate), certificate.success),
        _failures(certificate.failures),
        "<h2>Closest calls</h2>",
        _calls(closest_calls(run, certificate)),
        "<h2>Replay</h2>",
        _frame(replay or replay_page(run, certificate, readings)),
        "<h2>Over time</h2>",
        _kinds(bands),
        '<div id="charts" class="charts"></div>',
        '<p class="note">Click into a chart, or on any time, to see that moment in the replay. For limits and margins '
        "each point is the worst within its interval; dashed lines are limits. The margin of the centre of mass is "
        "the static one: a robot in motion may leave the region for a while.</p>",
        _certificate(certificate),
        _notices(certificate.notices),
        '<div class="two"><div>',
        _phases(run),
        "</div><div>",
        _clock(run),
        "</div></div>",
        _pace(readings.pace),
        _stances(run),
        "<footer>Written by mcplan. The page is self-contained; it fetches nothing. The certificate is recomputed "
        "from the record of the run, independently of the controller.</footer>",
    ]
    return _page(run.scenario.name, data, body)


def failure_page(scenario: Scenario, failure: str, tree: SearchTree | None) -> str:
    """Return the report of a scenario without a plan: the reason, and the search tree."""
    reasons = failure.strip().splitlines()
    page = None if tree is None or not tree.nodes else tree_page(scenario, tree, failure)
    body = [
        f"<h1>{_text(scenario.name)}</h1>",
        f'<p class="about">{_text(scenario.robot.name)}</p>',
        _result_box(f"No plan was found for {scenario.name}, so nothing was simulated.", False),
        f"<ul class='broken'>{''.join(f'<li>{_text(line)}</li>' for line in reasons)}</ul>",
        "" if page is None else "<h2>The search</h2>" + _frame(page),
        "<footer>Written by mcplan. The page is self-contained; it fetches nothing.</footer>",
    ]
    data: dict[str, Any] = {"readings": None}
    return _page(scenario.name, data, body)


def _page(name: str, data: dict[str, Any], body: Sequence[str]) -> str:
    return fill_template("report.html", f"{name}: report", data, STYLES, SCRIPTS, BODY="\n".join(body))


def result_sentence(run: Run, certificate: Report) -> str:
    """Return the result of a run in one sentence."""
    robot, name = run.record.robot.name, run.scenario.name
    duration = f"{run.t[-1] - run.t[0] + run.dt:.1f} s"
    judged = sum(1 for check in certificate.checks if check.bound)
    if certificate.success:
        return (
            f"{robot} executed {name}, {len(run.plan.stances)} stances in {duration}, reached its goal, "
            f"and all {judged} checks of the certificate hold."
        )
    broken = len(certificate.failures)
    checks = f"{broken} of {judged} checks of the certificate {'is' if broken == 1 else 'are'} broken"
    if run.record.stopped:
        return f"{robot} did not complete {name}: it stopped after {duration}, and {checks}."
    if certificate.values.get("fell"):
        return f"{robot} fell while executing {name} ({duration}); {checks}."
    goal = "reached its goal" if certificate.values.get("goal_reached") else "did not reach its goal"
    return (
        f"{robot} {goal} in {name} ({duration}), but {checks}."
        if goal[0] == "r"
        else (f"{robot} {goal} in {name} ({duration}); {checks}.")
    )


def _text(value: object) -> str:
    return html.escape(str(value), quote=True)


def _result_box(sentence: str, good: bool) -> str:
    return f'<div class="answer {"good" if good else "bad"}">{_text(sentence)}</div>'


def _failures(failures: Sequence[str]) -> str:
    items = "".join(f"<li>{_with_time(failure)}</li>" for failure in failures)
    return f'<ul class="broken">{items}</ul>' if items else ""


def _with_time(text: str) -> str:
    """Escape a text and make its first time a link into the replay."""
    match = TIME_PATTERN.search(text)
    if match is None:
        return _text(text)
    begin, end = match.span("text")
    return _text(text[:begin]) + _time(float(match["t"]), match["text"]) + _text(text[end:])


def _time(t: float | None, text: str | None = None) -> str:
    return "" if t is None else f'<a class="time" data-t="{t:.4f}">{_text(text or f"{t:.2f} s")}</a>'


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], kinds: Sequence[str] = ()) -> str:
    """Return a table of cells that are already markup; ``kinds`` are the CSS classes of the rows."""
    body = [
        f'<tr class="{kinds[i] if i < len(kinds) else ""}">'
        + "".join(f"<td{_attributes(name, cell)}>{cell}</td>" for name, cell in zip(head, row, strict=True))
        + "</tr>"
        for i, row in enumerate(rows)
    ]
    heads = "".join(f"<th>{_text(cell)}</th>" for cell in head)
    return f'<div class="scroll"><table><tr>{heads}</tr>{"".join(body)}</table></div>'


def _attributes(name: str, cell: str) -> str:
    """Return the attributes of a cell: the column's name for narrow screens; a class that keeps numbers on one line."""
    number = ' class="number"' if NUMBER_WITH_UNIT.fullmatch(cell) else ""
    return number + (f' data-head="{_text(name)}"' if cell else ' data-empty=""')


def _calls(calls: Sequence[ClosestCall]) -> str:
    rows = []
    for call in calls:
        meter = ""
        if call.share is not None:
            kind = "over" if call.share > 1.0 + 1e-6 else "near" if call.share >= NEAR_LIMIT else ""
            width = 100 * min(max(call.share, 0.0), 1.0)
            meter = f'<div class="meter"><div class="{kind}" style="width:{width:.1f}%"></div></div>'
        rows.append((_text(call.quantity), _text(call.value), meter, _text(call.where), _time(call.t)))
    note = (
        '<p class="note">The bar is the used share of the limit, amber from '
        f"{NEAR_LIMIT:.0%} on. The controller may use its whole friction cone: that cone is smaller "
        "than the one of the certificate.</p>"
    )
    return _table(("quantity", "closest value", "share of the limit", "where", "when"), rows) + note


def _frame(page: str) -> str:
    return f'<iframe title="replay" srcdoc="{html.escape(page, quote=True)}"></iframe>'


def _kinds(bands: Sequence[dict[str, Any]]) -> str:
    colours = {band["name"].split(" ")[0]: band["colour"] for band in bands}
    items = "".join(f'<span><i style="background:{c}"></i>{_text(kind)}</span>' for kind, c in colours.items())
    return f'<div class="kinds">{items}</div>'


def _certificate(certificate: Report) -> str:
    checks: list[Check] = sorted(certificate.checks, key=lambda check: check.passed)
    kinds = ["fail" if not check.passed else "pass" if check.bound else "" for check in checks]
    rows = [[_text(cell) for cell in check.row()[:4]] + [_with_time(check.where)] for check in checks]
    table = _table(("", "check", "value", "allowed", "where"), rows, kinds)
    judged = sum(1 for check in checks if check.bound)
    verdict = "holds" if certificate.success else "is broken"
    return (
        f"<details open class='certificate'><summary>Report: {verdict}, {judged} checks, "
        f"{len(certificate.failures)} broken</summary>"
        f"{table}</details>"
    )


def _notices(notices: Sequence[dict[str, Any]]) -> str:
    if not notices:
        return ""
    rows = [(_time(float(notice["t"])), _text(notice["text"])) for notice in notices]
    return f"<details><summary>Events outside the plan ({len(rows)})</summary>" + (
        _table(("when", "event"), rows) + "</details>"
    )


def _phases(run: Run) -> str:
    starts = np.flatnonzero(np.diff(run.phase, prepend=-1))
    ends = np.append(starts[1:], len(run))
    rows = [
        (
            _text(run.phases[run.phase[k]]),
            _time(float(run.t[k] - run.t[0])),
            f"{(end - k) * run.dt:.2f} s",
            _text(run.record.phases[run.phase[k]].ended_by or ""),
        )
        for k, end in zip(starts, ends, strict=True)
    ]
    table = _table(("phase", "from", "for", "ended by"), rows)
    return f"<details><summary>Phases ({len(rows)})</summary>{table}{CRITERIA_NOTE}</details>"


def _clock_time(seconds: float) -> str:
    """Format a duration in µs, ms or s."""
    for unit, scale in (("µs", 1e6), ("ms", 1e3)):
        if float(f"{scale * seconds:.3g}") < 1000.0:
            return f"{scale * seconds:.3g} {unit}"
    return f"{seconds:.3g} s" if seconds < 1000.0 else f"{seconds:.0f} s"


def _clock(run: Run) -> str:
    timings = [(words, run.timing[name]) for name, words in PART_LABELS.items() if len(run.timing.get(name, ()))]
    if not timings:
        return ""
    rows = [
        (_text(words), *(_clock_time(float(value)) for value in (np.median(x), np.quantile(x, 0.99), np.max(x))))
        for words, x in timings
    ]
    spent = sum(float(np.sum(run.timing[name])) for name in ("control", "physics") if name in run.timing)
    total = f"Control and physics took {spent:.1f} s for {run.t[-1] - run.t[0] + run.dt:.1f} s of motion"
    slow = [(_clock_time(tick.time), _time(tick.t), _text(tick.phase), _text(PART_LABELS.get(tick.part, tick.part)))
            for tick in slowest_ticks(run)]  # fmt: skip
    slowest = f"<h2>Slowest ticks</h2>{_table(('took', 'at', 'phase', 'most of it'), slow)}" if slow else ""
    return (
        f"<details><summary>Timings: {_text(total)}</summary>{_table(('part', 'median', '99 %', 'slowest'), rows)}"
        f"<p class='note'>A control tick has {1e3 * steps_per_tick(run) * run.dt:g} ms.</p>{slowest}</details>"
    )


def _pace(pace: PaceOfRun) -> str:
    if not pace.reference.has_motions:
        return ""
    rows = [
        (f"{motion.stance}", _text(motion.name), _time(motion.start), f"{motion.planned_duration:.2f} s",
         f"{motion.actual_duration:.2f} s",
         _text(limits_text(motion.limit_shares)))
        for motion in pace.motions
    ]  # fmt: skip
    head = ("stance", "motion", "from", "planned", "took", "active limits, share of time")
    note = (
        "<p class='note'>A motion takes longer than planned where it waits: for a touchdown, for an error to decrease, "
        "or for the robot to come to rest.</p>"
    )
    summary = f"Pace {pace.name}: {pace.planned_duration:.1f} s planned, {pace.actual_duration:.1f} s taken"
    return f"<details><summary>{_text(summary)}</summary>{_table(head, rows)}{note}</details>"


def _stances(run: Run) -> str:
    stances = run.plan.stances
    labels = margin_labels(run.robot).items()
    margins = {name: words for name, words in labels if any(name in stance.margins for stance in stances)}
    rows = []
    for k, stance in enumerate(stances):
        values = []
        for name, (_, form) in margins.items():
            value = stance.margins.get(name)
            scale = 1e3 if name == "clearance" else 1.0
            values.append("" if value is None else _text(form.format(scale * value)))
        motion = "" if stance.transition is None else _text(stance.transition.summary())
        rows.append((str(k), _text(stance.title), *values, motion, _text(", ".join(stance.patches))))
    head = ("", "stance", *(label for label, _ in margins.values()), "motion there", "on")
    return f"<details><summary>Plan: {len(rows)} stances with their margins</summary>{_table(head, rows)}</details>"
