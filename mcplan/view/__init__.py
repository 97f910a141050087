"""What a person looks at: meshcat replay, offline HTML, plots."""

FIGURE_KINDS = ("png", "pdf", "svg")
"""As what figures are written. Here, because the command line lists them before it imports Matplotlib."""
