"""Rows without clock times: the same however, and on how many machines, the cases were run."""

from mcplan.sweep.columns import COLUMNS


def without_clock(row):
    return {key: value for key, value in row.items() if key not in COLUMNS or COLUMNS[key].kind != "clock"}
