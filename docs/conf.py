"""How Sphinx makes the documentation: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]

from mcplan.version import __version__  # noqa: E402

project, author, copyright = "mcplan", "the mcplan developers", "the mcplan developers"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
extensions += ["docstrings", "schema_keys"]  # of this project: docs/_ext
exclude_patterns = ["_build", "_ext"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"  # shapes and units in the docstrings say more
autodoc_preserve_defaults = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
suppress_warnings = ["ref.python"]  # several things have an M
default_role = "code"

html_theme = "furo"
html_title = f"mcplan {release}"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_show_sphinx = False
pygments_style, pygments_dark_style = "friendly", "monokai"
