"""Set-up that all tests share."""

import os
from pathlib import Path

# Two processes that compile the same kernel for the first time can corrupt its cache, so each worker has its own.
# Here, and not in a fixture, because the directory is chosen when mcplan.core is imported.
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    base = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    os.environ["NUMBA_CACHE_DIR"] = str(Path(base) / f"mcplan-test-{worker}")
