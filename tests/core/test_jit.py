"""The policy of compilation."""

import numpy as np

from mcplan.core import jit


def test_a_kernel_is_compiled_by_its_own_rules_whoever_calls_it_first(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "CACHE_DIRECTORY", str(tmp_path))

    @jit.jit
    def exact(x):
        total = 0.0
        for k in range(x.size):
            total += x[k]
        return total

    @jit.jit_inline
    def fast(x):
        return 2.0 * exact(x)

    assert fast(np.ones(5)) == 10.0
    ((_, by_itself),) = exact.inspect_llvm().items()
    assert "fadd double" in by_itself
    assert "reassoc" not in by_itself
    assert "alwaysinline" not in by_itself
    ((_, caller),) = fast.inspect_llvm().items()
    assert "reassoc" in caller
