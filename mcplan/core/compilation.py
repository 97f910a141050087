"""Compilation of kernels with Numba, by one policy and through Numba's public API.

Every kernel sets the options ``fastmath`` and ``forceinline``. Otherwise it would inherit them from its first caller,
and the cache would store the result: rounding would depend on what had run before.

`mcplan.core.accelerator` compiles the same kernels in less time, to faster code, through private parts of Numba. It is
used with the versions of Numba that it was tested with, unless the environment has ``MCPLAN_ACCELERATOR=0``.

`mcplan.core.jit` imports this module with the first kernel that is called, because it imports Numba.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numba
from numba import config, types
from numba.core import event
from numba.extending import intrinsic, overload

from mcplan.util.compiling import WATCH
from mcplan.util.kernel_cache import accelerated, cache_directory, drop_truncated, exclusive, wheel_cpu

CACHE_DIRECTORY, ACCELERATED = cache_directory(), accelerated()

if not config.CPU_NAME and (cpu := wheel_cpu(Path(CACHE_DIRECTORY))):
    config.CPU_NAME, config.CPU_FEATURES = cpu, ""  # kernels of a wheel are for a class of processors

if ACCELERATED:
    from mcplan.core import accelerator
else:
    drop_truncated(CACHE_DIRECTORY)


def compile_kernel(function, *, fastmath=False, forceinline=False, allocates=False, **options):
    """Return the kernel of a function, which is compiled for each signature at its first call."""
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


on_compiling(WATCH.compilation_started, WATCH.compilation_ended)
_save_lock = _SaveLock()
for _kind in ("numba:compile", "numba:compiler_lock"):
    event.register(_kind, _save_lock)


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


def compile_view(view, locate, axes, buffer):
    """Compile calls of ``view`` to a pointer and lengths, as `mcplan.core.jit.jit_view` describes."""
    if ACCELERATED:
        accelerator.lower_view(view, locate, axes, buffer)
        return
    options = {"error_model": "numpy", "nogil": True, "fastmath": False}
    compiled_locate = numba.njit(**options)(locate)

    def compiled(*arguments):
        location, source = compiled_locate(*arguments), arguments[buffer]
        pointer = _pointer(source.ctypes.data + source.itemsize * location[0], source)
        return _as_mutable_as(numba.carray(pointer, location[1:]), source)

    overload(view, jit_options=options)(lambda *arguments: compiled)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Limit parallel kernels to ``count`` threads in the block, so that other processes have cores, too."""
    previous = numba.get_num_threads()
    numba.set_num_threads(max(1, min(count, config.NUMBA_NUM_THREADS)))
    try:
        yield
    finally:
        numba.set_num_threads(previous)
