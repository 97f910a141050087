"""Put the scenario files into the wheel, and compiled kernels where there are some (``make wheel``).

They live in ``stances/`` at the top, where a user looks for them. An editable install finds them there, and must not
get a second copy that goes stale; hatchling's ``force-include`` would make one, hence this hook.
"""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelFiles(BuildHookInterface):
    """Add ``stances/`` as ``mcplan/stances`` to a wheel, and the folder in ``MCPLAN_KERNELS`` as ``mcplan/kernels``.

    A wheel with kernels is one for this platform and this version of Python.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Extend the list of files, except for an editable install."""
        if version != "editable":
            build_data["force_include"]["stances"] = "mcplan/stances"
            if kernels := os.environ.get("MCPLAN_KERNELS"):
                build_data["force_include"][kernels] = "mcplan/kernels"
                build_data["pure_python"], build_data["infer_tag"] = False, True
