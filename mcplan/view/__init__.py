"""Visualization: meshcat replay, offline HTML pages, plots, GIF and MP4."""

FIGURE_KINDS = ("png", "pdf", "svg")
"""File formats of figures. Defined here so that the command line can list them without importing Matplotlib."""
