"""Decorators of kernels: functions that Numba compiles, at the first call of any of them.

Numba takes half a second to import, and a program that calls no kernel (a list of names, a mistake in a file) does
without. So the decorators return a `Kernel`, and the first call of one of them imports `mcplan.core.compilation`, which
puts compiled kernels in their place in all modules.
"""

import inspect
import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from types import ModuleType

from mcplan.util.kernel_cache import accelerated, cache_directory, compiled_kernels

CACHE_DIRECTORY = cache_directory()
"""Folder of the compiled kernels."""

ACCELERATED = accelerated()
"""Whether `mcplan.core.accelerator` compiles the kernels."""

REASSOCIATE = {"reassoc", "contract"}
"""LLVM's flags that let sums be re-ordered and fused with products, and nothing else."""


def prange(*arguments):
    """Return the range of a loop over independent items; compiled kernels share it out among threads."""
    return range(*arguments)


class Kernel:
    """A function that will be compiled; `compile_all` replaces it by the compiled one.

    Parameters
    ----------
    function, options : see `mcplan.core.compilation.compile_kernel`.
    """

    def __init__(self, function, options):
        self.py_func, self.options = function, options
        self.compiled = None
        wraps(function)(self)

    def __call__(self, *arguments):
        """Call the compiled kernel; in a block of `interpreted` the function, within its budget."""
        global _budget, _depth
        if self.compiled is None and (_depth or _budget > 0):
            _budget, _depth = _budget - 1, _depth + 1
            try:
                return self.py_func(*arguments)
            finally:
                _depth -= 1
        compile_all()
        return self.compiled(*arguments)

    def __getattr__(self, name):
        """Return an attribute of the compiled kernel, such as its signatures."""
        if name.startswith("__"):
            raise AttributeError(name)
        compile_all()
        return getattr(self.compiled, name)


_lock = threading.RLock()
_kernels: list[Kernel] = []
_views: list[tuple] = []
_compilation = None
_budget = _depth = 0  # calls that may still be interpreted; interpreted calls that have not returned


def compile_all() -> None:
    """Import Numba, and replace the kernels of all modules by compiled ones, which load or compile at their call."""
    global _compilation
    with _lock:
        if _compilation is None:
            from mcplan.core import compilation

            for view in _views:
                compilation.compile_view(*view)
            for kernel in _kernels:
                kernel.compiled = compilation.compile_kernel(kernel.py_func, **kernel.options)
            replaced = {id(kernel): kernel.compiled for kernel in _kernels} | {id(prange): compilation.numba.prange}
            for module in [m for m in sys.modules.values() if isinstance(m, ModuleType) and m.__name__ != __name__]:
                names = vars(module)
                names.update({name: replaced[id(value)] for name, value in names.items() if id(value) in replaced})
            _compilation = compilation


@contextmanager
def interpreted(budget: int = 2000) -> Iterator[None]:
    """Let kernels run as Python functions in the block, until Numba is imported or ``budget`` calls are used up.

    A few hundred short calls take less time than importing Numba.
    """
    global _budget
    previous, _budget = _budget, budget
    try:
        yield
    finally:
        _budget = previous


def _kernel(function, **options):
    """Return the kernel of a function: until the first call of one, if the function is one of this package."""
    if (
        _compilation is None
        and function.__module__.startswith("mcplan.core")
        and "<locals>" not in function.__qualname__
    ):
        _kernels.append(Kernel(function, options))
        return _kernels[-1]
    compile_all()
    return _compilation.compile_kernel(function, **options)


def is_cached(kernel) -> bool:
    """Return whether the cache of this version has a kernel, compiled for any argument types."""
    if not hasattr(kernel, "py_func"):  # compilation is disabled: a plain function, which needs no cache
        return True
    file = Path(inspect.getfile(kernel.py_func))
    return f"{file.parent.name}/{file.stem}.{kernel.py_func.__qualname__}" in compiled_kernels(CACHE_DIRECTORY)


def jit(function):
    """Compile a kernel: no Python objects, cached on disk, IEEE division, without the interpreter lock."""
    return _kernel(function)


def jit_algebra(function):
    """Compile a kernel of dense algebra: sums may be re-ordered and fused; NaN and infinity keep their meaning."""
    return _kernel(function, fastmath=REASSOCIATE)


def jit_inline(function):
    """Compile a small kernel with many array arguments, and inline it into its callers.

    Passing an array takes seven words: a call with two or three packed models costs more than a short function.
    """
    return _kernel(function, fastmath=REASSOCIATE, forceinline=True)


def jit_inline_exact(function):
    """Compile a kernel like `jit`, and inline it into its callers.

    A call with a scene and a table of contacts takes 0.1 µs: arrays are passed on the stack, seven words each.
    """
    return _kernel(function, forceinline=True)


def jit_allocating(function):
    """Compile a kernel that allocates, or assigns an array to a slice; not for kernels that run at every tick."""
    return _kernel(function, allocates=True)


def jit_parallel(function):
    """Compile a kernel whose outer ``prange`` runs over independent items of 20 µs or more."""
    return _kernel(function, parallel=True)


def jit_view(axes, buffer=0):
    """Decorate a function that locates an array with ``axes`` axes inside its argument number ``buffer``.

    It returns the index of the array's first entry among all entries of the argument, and the lengths along the axes;
    the decorated function returns the array itself, as a view. Compiled, a view is a pointer and these lengths. Nothing
    is checked, and no kernel may return a view, because it does not own its memory.
    """

    def register(locate):
        @wraps(locate)
        def view(*arguments):
            first, *lengths = map(int, locate(*arguments))
            return arguments[buffer].reshape(-1)[first : first + math.prod(lengths)].reshape(lengths)

        if _compilation is None:
            _views.append((view, locate, axes, buffer))
        else:
            _compilation.compile_view(view, locate, axes, buffer)
        return view

    return register
