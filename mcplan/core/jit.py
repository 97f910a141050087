"""Decorators that compile kernels with Numba, by one policy and through Numba's public API.

Every kernel sets the options ``fastmath`` and ``forceinline``. Otherwise it would inherit them from its first caller,
and the cache would store the result: rounding would depend on what had run before.

`mcplan.core.accelerator` compiles the same kernels in less time, to faster code, through private parts of Numba. It is
used with the versions of Numba that it was tested with, unless the environment has ``MCPLAN_ACCELERATOR=0``.
"""

import inspect
import math
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import wraps
from pathlib import Path

import numba
from numba import config, types
from numba.core import event
from numba.extending import intrinsic, overload

from mcplan.util.compiling import WATCH
from mcplan.util.kernel_cache import accelerated, cache_directory, compiled_kernels, drop_truncated, exclusive

CACHE_DIRECTORY = cache_directory()
"""Folder of the compiled kernels."""

ACCELERATED = accelerated()
"""Whether `mcplan.core.accelerator` compiles the kernels."""

REASSOCIATE = {"reassoc", "contract"}
"""LLVM's flags that let sums be re-ordered and fused with products, and nothing else."""

prange = numba.prange

if ACCELERATED:
    from mcplan.core import accelerator
else:
    drop_truncated(CACHE_DIRECTORY)


def _compile(function, *, fastmath=False, forceinline=False, allocates=False, **options):
    options |= {"error_model": "numpy", "nogil": True, "fastmath": fastmath, "forceinline": forceinline}
    options["no_cfunc_wrapper"] = True  # kernels are not called from C; saves 5 % of the compilation time
    with _package_cache():
        if ACCELERATED:
            return accelerator.compile_kernel(function, options, allocates)
        return numba.njit(cache=True, **options)(function)


@contextmanager
def _package_cache():
    """Let functions decorated in the block use the cache of the package; other code keeps the user's."""
    settings = {"CACHE_DIR": CACHE_DIRECTORY, "CACHE_LOCATOR_CLASSES": ""}
    previous = {name: getattr(config, name, "") for name in settings}
    try:
        for name, value in settings.items():
            setattr(config, name, value)
        yield
    finally:
        for name, value in previous.items():
            setattr(config, name, value)


def is_cached(kernel) -> bool:
    """Return whether the cache of this version has a kernel, compiled for any argument types."""
    if not hasattr(kernel, "py_func"):  # compilation is disabled: a plain function, which needs no cache
        return True
    file = Path(inspect.getfile(kernel.py_func))
    return f"{file.parent.name}/{file.stem}.{kernel.py_func.__qualname__}" in compiled_kernels(CACHE_DIRECTORY)


def on_compiling(started: Callable[[str], None], ended: Callable[[], None]) -> None:
    """Call ``started(name)`` before and ``ended()`` after each later compilation of a kernel in this process.

    A kernel compiles its callees, so pairs of calls are nested. Kernels from the cache are not reported.
    """

    class Compilation(event.Listener):
        def on_start(self, event):
            started(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event):
            ended()

    event.register("numba:compile", Compilation())


class _SaveLock(event.Listener):
    """Lock that lets one process at a time save kernels.

    It is held from the end of a compilation until Numba releases its compiler lock.

    Numba numbers the files of a kernel by the index that it finds. Two processes that save different signatures at the
    same time would use the same number, and one would get the code of the other (Numba's issue 4807).
    """

    def __init__(self):
        self._thread = threading.local()

    def on_start(self, event):
        if event.kind == "numba:compiler_lock":
            self._thread.depth = getattr(self._thread, "depth", 0) + 1

    def on_end(self, event):
        thread = self._thread
        if event.kind == "numba:compile":
            thread.lock, thread.lock_depth = ExitStack(), thread.depth
            thread.lock.enter_context(exclusive(CACHE_DIRECTORY))
            return
        if getattr(thread, "lock_depth", 0) == thread.depth:
            thread.lock.close()
            thread.lock_depth = 0
        thread.depth -= 1


on_compiling(WATCH.begins, WATCH.ends)
_save_lock = _SaveLock()
for _kind in ("numba:compile", "numba:compiler_lock"):
    event.register(_kind, _save_lock)


def jit(function):
    """Compile a kernel: no Python objects, cached on disk, IEEE division, without the interpreter lock."""
    return _compile(function)


def jit_algebra(function):
    """Compile a kernel of dense algebra: sums may be re-ordered and fused; NaN and infinity keep their meaning."""
    return _compile(function, fastmath=REASSOCIATE)


def jit_inline(function):
    """Compile a small kernel with many array arguments, and inline it into its callers.

    Passing an array takes seven words: a call with two or three packed models costs more than a short function.
    """
    return _compile(function, fastmath=REASSOCIATE, forceinline=True)


def jit_allocating(function):
    """Compile a kernel that allocates, or assigns an array to a slice; not for kernels that run at every tick."""
    return _compile(function, allocates=True)


def jit_parallel(function):
    """Compile a kernel whose outer ``prange`` runs over independent items of 20 µs or more."""
    return _compile(function, parallel=True)


@intrinsic
def _pointer(context, address, array):
    """Return an address as a pointer to entries like those of an array."""
    kind = types.CPointer(array.dtype)

    def lower(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return kind(address, array), lower


@intrinsic
def _as_mutable_as(context, array, other):
    """Return an array that is read-only for the compiler if the other one is."""

    def lower(context, builder, signature, arguments):
        return arguments[0]

    return array.copy(readonly=not other.mutable)(array, other), lower


def jit_view(axes, buffer=0):
    """Decorate a function that locates an array with ``axes`` axes inside its argument number ``buffer``.

    It returns the index of the array's first entry and the lengths along the axes; the decorated function returns the
    array itself, as a view. Compiled, a view is a pointer and these lengths. Nothing is checked, and no kernel may
    return a view, because it does not own its memory.
    """

    def register(locate):
        @wraps(locate)
        def view(*arguments):
            first, *lengths = map(int, locate(*arguments))
            return arguments[buffer][first : first + math.prod(lengths)].reshape(lengths)

        if ACCELERATED:
            accelerator.lower_view(view, locate, axes, buffer)
            return view
        options = {"error_model": "numpy", "nogil": True, "fastmath": False}
        compiled_locate = numba.njit(**options)(locate)

        def compiled(*arguments):
            location, source = compiled_locate(*arguments), arguments[buffer]
            pointer = _pointer(source.ctypes.data + source.itemsize * location[0], source)
            return _as_mutable_as(numba.carray(pointer, location[1:]), source)

        overload(view, jit_options=options)(lambda *arguments: compiled)
        return view

    return register


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Limit parallel kernels to ``count`` threads in the block, so that other processes have cores, too."""
    previous = numba.get_num_threads()
    numba.set_num_threads(max(1, min(count, config.NUMBA_NUM_THREADS)))
    try:
        yield
    finally:
        numba.set_num_threads(previous)
