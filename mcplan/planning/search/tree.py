"""What a search looked at: every stance that was proven, every move that was not, and why."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mcplan.planning.posture.violation import Violation


@dataclass
class SearchTree:
    """The record of a search.

    Attributes
    ----------
    nodes : stances that were proven, in order: index, parent, move, contacts, posture, g, h, and whether expanded.
    rejected : moves that were not: parent, move, the contacts it would have made, stage, kind, thing and amount.
    skipped : counts of candidates that no filter let through, by reason.
    calls : of the posture generator.
    path : indices of the nodes from the start to the goal, as the plan takes them; empty while there is none.
    """

    nodes: list[dict[str, Any]] = field(default_factory=list)
    rejected: list[dict[str, Any]] = field(default_factory=list)
    skipped: Counter = field(default_factory=Counter)
    calls: int = 0
    path: list[int] = field(default_factory=list)

    def node(self, parent: int | None, move: str, contacts, q: np.ndarray, g: float, h: float) -> int:
        """Add a stance and return its index."""
        self.nodes.append(
            {
                "index": len(self.nodes),
                "parent": parent,
                "move": move,
                "contacts": [contact.to_data() for contact in contacts],
                "q": q.tolist(),
                "g": float(g),
                "h": float(h),
                "expanded": False,
            }
        )
        return len(self.nodes) - 1

    def expand(self, index: int) -> None:
        """Say that the moves of a stance were looked at."""
        self.nodes[index]["expanded"] = True

    def reject(self, parent: int, move: str, stage: str, violations: tuple[Violation, ...], added=()) -> None:
        """Add a move that failed, with its worst violation, and the contacts it would have made."""
        first = violations[0] if violations else Violation("reach", move, 0.0)
        self.rejected.append(
            {
                "parent": parent,
                "move": move,
                "contacts": [contact.to_data() for contact in added],
                "stage": stage,
                "kind": first.kind,
                "thing": first.thing,
                "amount": float(first.amount),
                "reason": "; ".join(str(violation) for violation in violations),
            }
        )

    def summary(self) -> list[str]:
        """Return how many moves were rejected for what, the most frequent first."""
        counts = Counter((r["stage"], r["kind"], r["thing"]) for r in self.rejected)
        least: dict[tuple, float] = {}
        for r in self.rejected:
            key = (r["stage"], r["kind"], r["thing"])
            least[key] = min(least.get(key, np.inf), r["amount"])
        lines = [
            f"{count} x {stage}: {Violation(kind, thing, least[stage, kind, thing])} (at least)"
            for (stage, kind, thing), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        ]
        return lines + [f"{count} x {reason}" for reason, count in sorted(self.skipped.items())]

    def to_data(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return {
            "calls": self.calls,
            "nodes": self.nodes,
            "rejected": self.rejected,
            "skipped": dict(sorted(self.skipped.items())),
            "path": self.path,
        }
