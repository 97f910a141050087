"""The one policy by which kernels are compiled; what has been compiled is kept by `mcplan.core.kernel_cache`.

What a kernel does not say about ``fastmath`` and ``forceinline`` it inherits from the caller that happens to be the
first to have it compiled, and the cache keeps that: rounding depended on what had run before. So every kernel says it.

A kernel that allocates nothing need not count references to arrays: ``_nrt=False`` leaves that out, more than a
third of the time of kernels that pass many arrays on. What allocates does not compile then, the assignment of an array
to a slice included; ``jit_allocating`` is for the few that run seldom. Nor do kernels return arrays: who calls from
Python, or counts, would take them for its own. What ``jit_view`` makes is for kernels of this package.

Numba compiles a kernel anew for each literal that another one hands it, ``row(packed, 3)`` and ``row(packed, 4)``. Here
a literal counts as a number like any other: a fifth of all compilation was for such copies.

Numba compares all options of a compilation with those of others for each operator of a kernel, half of the time that
it took to find types. `SettledFlags` makes that short.

All this stands on parts of Numba that it promises to nobody: ``Dispatcher.get_call_template`` and ``_cache``, the
classes of its cache and of its libraries of code, numbers of functions, the option ``_nrt``, ``make_array`` and
``populate_array``. So the package asks for the minor version with which it was tried (0.68) and no later one.
"""

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path

import numba
from numba import config, types
from numba.core import event
from numba.core.compiler import Compiler, Flags
from numba.core.dispatcher import Dispatcher
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import make_array, populate_array

from mcplan.core.kernel_cache import CACHE_DIRECTORY, KernelCache, is_of_the_package

prange = numba.prange


class KernelFlags(Flags):
    """Options of a compilation; Numba copies them when it begins."""

    def copy(self):
        """Return the copy that holds for what is compiled with them."""
        return SettledFlags(self)


class SettledFlags(Flags):
    """Options that change no more: all their values are gathered once, not whenever an operator is looked up."""

    __slots__ = ("_all",)

    def __init__(self, flags):
        super().__init__(flags)
        self._all = super().values()

    def values(self):
        """Return all values by their names."""
        return self._all

    def copy(self):
        """Return a copy that may change."""
        return Flags(self)


class KernelCompiler(Compiler):
    """Compiles a kernel of the package under a symbol that its module, its name and the types of arguments make.

    Numba counts the functions of a process, and writes the number into the symbol.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.state.flags = KernelFlags(self.state.flags)

    def _compile_bytecode(self):
        self.state.func_id.unique_id = 0  # of no other function: Numba begins with 1
        return super()._compile_bytecode()


def _compile(function, *, fastmath=False, forceinline=False, allocates=False, **options):
    options |= {"fastmath": fastmath, "forceinline": forceinline, "_nrt": allocates}
    options["no_cfunc_wrapper"] = True  # C asks for no kernel: a twentieth of the time that it takes to compile one
    if is_of_the_package(function):
        options["pipeline_class"] = KernelCompiler
    kernel = numba.njit(error_model="numpy", nogil=True, **options)(function)
    if isinstance(kernel, Dispatcher):  # a plain function where compilation is disabled
        kernel._cache = KernelCache(function, copied=forceinline)
        _for_any_number(kernel)
    return kernel


def _for_any_number(kernel):
    """Let calls from other kernels share one compilation, whatever literals they pass."""
    template = kernel.get_call_template
    kernel.get_call_template = lambda args, kws: template(
        tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in kws.items()}
    )


def is_cached(kernel) -> bool:
    """Say whether a kernel has been compiled on this machine, by this version, for whatever types."""
    if not isinstance(kernel, Dispatcher):  # a plain function where compilation is disabled: nothing is missing
        return True
    function = kernel.py_func
    name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}-*.nbi"
    folder = Path(inspect.getfile(function)).parent.name
    return any(Path(CACHE_DIRECTORY).glob(f"{folder}/{name}"))


def on_compiling(begins: Callable[[str], None], ends: Callable[[], None]) -> None:
    """Have ``begins`` called with the name of each kernel that this process compiles from now on, ``ends`` after it.

    A kernel compiles those that it calls, so pairs are nested. What comes from the cache is not told of.
    """

    class Told(event.Listener):
        def on_start(self, event):
            begins(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event):
            ends()

    event.register("numba:compile", Told())


def jit(function):
    """Compile a kernel: no Python objects, cached on disk, IEEE division, without the interpreter lock."""
    return _compile(function)


def jit_algebra(function):
    """Compile small dense algebra: sums may be re-ordered and fused; NaN and infinity keep their meaning."""
    return _compile(function, fastmath={"reassoc", "contract"})


def jit_inline(function):
    """Compile small algebra that is called with many arrays, and copy it into its callers.

    Each array is seven words to pass: a call with two or three packed models costs more than a short body.
    """
    return _compile(function, fastmath={"reassoc", "contract"}, forceinline=True)


def jit_allocating(function):
    """Compile a kernel that allocates, which none does that runs per tick."""
    return _compile(function, allocates=True)


def jit_view(axes, buffer=0):
    """Let kernels call a function for an array with so many axes inside the argument that ``buffer`` counts.

    The function itself says where the array is: its first entry, and its lengths along the axes. Compiled, a view is a
    pointer and these lengths; nothing is checked.
    """

    def register(place):
        @wraps(place)
        def view(*arguments):
            first, *lengths = map(int, place(*arguments))
            return arguments[buffer][first : first + math.prod(lengths)].reshape(lengths)

        def typed(context):
            def of(*kinds):
                return types.Array(kinds[buffer].dtype, axes, "C", readonly=not kinds[buffer].mutable)

            of.__signature__ = inspect.signature(place)
            return of

        def lowered(context, builder, signature, arguments):
            where = types.UniTuple(types.intp, 1 + axes)
            found = context.compile_internal(builder, place, where(*signature.args), arguments)
            first, *lengths = (builder.extract_value(found, k) for k in range(1 + axes))
            whole = make_array(signature.args[buffer])(context, builder, arguments[buffer])
            strides = [whole.itemsize]
            for length in reversed(lengths[1:]):
                strides.insert(0, builder.mul(strides[0], length))
            array = make_array(signature.return_type)(context, builder)
            populate_array(array, builder.gep(whole.data, [first]), lengths, strides, whole.itemsize, meminfo=None)
            return array._getvalue()

        type_callable(view)(typed)
        lower_builtin(view, types.VarArg(types.Any))(lowered)
        return view

    return register


def jit_parallel(function):
    """Compile a kernel whose outer ``prange`` runs over independent items of 20 µs or more."""
    return _compile(function, parallel=True)


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Let parallel kernels use this many threads at most: fewer than there are cores when others need them."""
    before = numba.get_num_threads()
    numba.set_num_threads(max(1, min(count, config.NUMBA_NUM_THREADS)))
    try:
        yield
    finally:
        numba.set_num_threads(before)
