"""Put the scenario files into the wheel.

They live in ``stances/`` at the top, where a user looks for them. An editable install finds them there, and must not
get a second copy that goes stale; hatchling's ``force-include`` would make one, hence this hook.
"""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ScenarioFiles(BuildHookInterface):
    """Add ``stances/`` as ``mcplan/stances`` to a standard wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Extend the list of files, except for an editable install."""
        if version != "editable":
            build_data["force_include"]["stances"] = "mcplan/stances"
