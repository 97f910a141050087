"""Run notebooks without Jupyter: ``python notebook.py FOLDER FILE NAME=VALUE FILE ...``, lines ``NAME = ...`` changed.

The cells go through IPython, which the library brings along. Each notebook runs in a folder ``FOLDER/STEM`` of its own;
what it displays is written to ``page.html`` there, to look at. Standard output has a line ``STEM: ANSWER`` for each,
with the variable ``answer`` that every notebook here has; one that ends in an error has none, and the exit status is 1.
"""

import base64
import contextlib
import html
import json
import re
import sys
import time
import traceback
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell
from IPython.core.pylabtools import select_figure_formats
from IPython.utils.capture import capture_output
from traitlets.config import Config


def run(path: Path, changes: dict[str, str]) -> str:
    """Run every cell, some lines ``NAME = ...`` changed; return the variable ``answer``; the first error ends it."""
    shell = InteractiveShell.instance()
    shell.reset()
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
    Path("page.html").write_text("<meta charset='utf-8'>" + "\n".join(shown), encoding="utf-8")
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


def main(folder: Path, arguments: list[str]) -> int:
    """Run the notebooks that are named, one after the other; return the exit status."""
    changes: dict[Path, dict[str, str]] = {}
    for argument in arguments:
        if argument.endswith(".ipynb"):
            changes[Path(argument).resolve()] = {}
        else:
            name, value = argument.split("=", 1)
            changes[next(reversed(changes))][name] = value
    failed = False
    for path, changed in changes.items():
        here = folder / path.stem
        here.mkdir()
        try:
            with contextlib.chdir(here):
                print(f"{path.stem}: {run(path, changed)}", flush=True)
        except Exception:
            traceback.print_exc()
            failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
