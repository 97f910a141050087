"""Run a notebook without Jupyter, in a process of its own: ``python notebook.py FILE OUT.html NAME=VALUE``.

The cells go through IPython, which the library brings along; what they display is written as a page to look at.
The last line of standard output is the variable ``answer``, as every notebook here has one.
"""

import base64
import html
import json
import re
import sys
import time
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.pylabtools import select_figure_formats
from IPython.utils.capture import capture_output
from traitlets.config import Config


def run(path: Path, page: Path | None, changes: dict[str, str]) -> str:
    """Run every cell, some lines ``NAME = ...`` changed; return the variable ``answer``; the first error ends it."""
    shell = InteractiveShell.instance()
    shell.config.IPKernelApp = Config()  # what the library knows a notebook by
    shell.run_cell("import matplotlib\nmatplotlib.use('Agg')")
    select_figure_formats(shell, {"png"})
    shown = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        for name, value in changes.items():
            source = re.sub(rf"^{name} = .*$", f"{name} = {value}", source, flags=re.MULTILINE)
        if cell["cell_type"] == "markdown":
            shown.append(f"<p>{html.escape(source)}</p>")
            continue
        began = time.perf_counter()
        with capture_output() as captured:
            result = shell.run_cell(source, store_history=True)
        if not result.success:
            print(captured.stdout, captured.stderr, source, sep="\n", file=sys.stderr)
            result.raise_error()
        shown.append(f"<pre style='background:#eee'>{html.escape(source)}</pre>")
        shown.append(f"<pre>{html.escape(captured.stdout)}{html.escape(captured.stderr)}</pre>")
        formats = [output.data for output in captured.outputs]
        if result.result is not None and not formats:
            formats = [shell.display_formatter.format(result.result)[0]]
        shown += [_shown(data) for data in formats]
        shown.append(f"<small>{time.perf_counter() - began:.1f} s</small>")
    if page is not None:
        page.write_text("<meta charset='utf-8'>" + "\n".join(shown), encoding="utf-8")
    return str(shell.user_ns["answer"])


def _shown(data: dict) -> str:
    if "image/svg+xml" in data:
        return data["image/svg+xml"]
    if "text/html" in data:
        return data["text/html"]
    if "image/png" in data:
        image = data["image/png"]
        image = image if isinstance(image, str) else base64.b64encode(image).decode()
        return f"<img src='data:image/png;base64,{image}'>"
    return f"<pre>{html.escape(data.get('text/plain', ''))}</pre>"


if __name__ == "__main__":
    changes = dict(item.split("=", 1) for item in sys.argv[3:])
    print(run(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None, changes))
