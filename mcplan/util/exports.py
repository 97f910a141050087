"""Export formats of runs: metadata known without importing them, for the command line."""

from collections.abc import Mapping
from typing import NamedTuple


class ExportFormat(NamedTuple):
    """An export format.

    written_by : the function, as ``module:name``; it takes the run, the path and the rate, and returns the files.
    content : content of the file, in a few words.
    """

    written_by: str
    content: str


EXPORTS: Mapping[str, ExportFormat] = {
    "csv": ExportFormat("mcplan.export.tables:write_csv", "tables"),
    "mujoco": ExportFormat("mcplan.sim.mujoco.export:write", "keyframes (MJCF)"),
    "mcap": ExportFormat("mcplan.export.mcap_log:write", "a log"),
    "reference": ExportFormat("mcplan.export.reference_motion:write_csv", "rows of base and joints"),
    "motion": ExportFormat("mcplan.export.reference_motion:write_folder", "a folder of poses and velocities"),
    "npz": ExportFormat("mcplan.export.reference_motion:write_npz", "the same as arrays"),
    "trajectory": ExportFormat("mcplan.export.tables:write_trajectory", "a ROS 2 message"),
}
