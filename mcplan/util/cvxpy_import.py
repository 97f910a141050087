"""Import of CVXPY without SciPy's statistics, which take 0.2 s to import."""

import sys
from types import ModuleType


def import_cvxpy() -> None:
    """Import CVXPY; `scipy.stats`, of which only quantum entropies use a function, is imported at the call of this."""
    if "scipy.stats" in sys.modules or "cvxpy" in sys.modules:
        return
    statistics = ModuleType("scipy.stats")
    statistics.entropy = _entropy  # type: ignore[attr-defined]
    sys.modules["scipy.stats"] = statistics
    try:
        import cvxpy  # noqa: F401
    finally:
        del sys.modules["scipy.stats"]


def _entropy(*arguments, **options):
    from scipy.stats import entropy

    return entropy(*arguments, **options)
