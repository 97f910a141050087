"""CVXPY is imported without SciPy's statistics, which it and others get when they need them."""

import subprocess
import sys

CODE = """
import sys
from mcplan.util.cvxpy_import import import_cvxpy
import_cvxpy()
assert "cvxpy" in sys.modules and "scipy.stats" not in sys.modules
print(sys.modules["cvxpy.atoms.quantum_rel_entr"].entropy([0.5, 0.5], base=2))
import scipy.stats
print(scipy.stats.norm.cdf(0.0))
"""


def test_statistics_are_imported_where_they_are_needed():
    result = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert [float(line) for line in result.stdout.split()] == [1.0, 0.5]
