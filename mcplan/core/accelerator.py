"""Faster compilation and faster kernels by private parts of Numba; all that `mcplan.core.jit` does holds without it.

A first run takes a third of the time, and a tick some two fifths, by this:

- A kernel that allocates nothing does not count references to arrays (``_nrt=False``). Kernels that allocate, or assign
  an array to a slice, do not compile then; `jit_allocating` is for them.
- A literal from another kernel, ``row(packed, 3)``, counts as a number like any other: Numba would compile the callee
  anew for each.
- Numba compares all options of a compilation with those of others for each operator of a kernel, half of the time that
  it takes to find types. `SettledFlags` makes that short.
- Numba copies the code of all callees, and of theirs, into a kernel, and compiles it all again, once per caller. Here
  that is so for what is short or to be copied in. A longer callee is called in place, by its symbol, which is the same
  in every process. The cache holds with a caller the kernels that have to be loaded before it. Numba's ``cache=True``
  does not know that: a function outside of this package that calls kernels is to be cached by `mcplan.core.jit` too.
- The place of a kernel in the cache does not depend on where the package lies: a second clone or environment with the
  same files compiles nothing.

The private parts are the option ``_nrt``, ``Dispatcher.get_call_template`` and ``_cache``, ``Flags``, the compiler, the
classes of the cache and of libraries of code, numbers of functions, ``make_array`` and ``populate_array``. So it is
used with versions of Numba that it was tried with (`mcplan.util.kernel_cache.TRIED`), and with no other.
"""

import inspect
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numba
from llvmlite.binding import parse_assembly
from numba import config, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.compiler import Compiler, Flags
from numba.core.dispatcher import Dispatcher
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import make_array, populate_array

from mcplan.util.kernel_cache import CORE

LONG = 300
"""Lines of optimised LLVM code above which a kernel is called in place; LLVM would not copy it by itself."""

_IN_PLACE: dict[str, tuple[str, str, tuple]] = {}
"""By symbol, the kernels of this process that others call in place: module, name, types of the arguments."""


def compile_kernel(function, options, allocates):
    """Compile a kernel by these options of ``numba.njit``."""
    options["_nrt"] = allocates
    if _has_symbol(function):
        options["pipeline_class"] = KernelCompiler
    kernel = numba.njit(**options)(function)
    if isinstance(kernel, Dispatcher):  # a plain function where compilation is disabled
        kernel._cache = KernelCache(function, copied=options["forceinline"])
        template = kernel.get_call_template
        kernel.get_call_template = lambda args, kws: template(
            tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in kws.items()}
        )
    return kernel


def lower_view(view, place, axes, buffer):
    """Have kernels that call ``view`` get a pointer and lengths, as `mcplan.core.jit.jit_view` describes."""

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


def _has_symbol(function) -> bool:
    """Say whether module and name tell a function from others: it is of this package, not within another function."""
    return function.__module__.startswith("mcplan.") and "<locals>" not in function.__qualname__


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
    """Compiles a kernel under a symbol that its module, its name and the types of its arguments determine.

    Numba counts the functions of a process, and writes the number into the symbol.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.state.flags = KernelFlags(self.state.flags)

    def _compile_bytecode(self):
        self.state.func_id.unique_id = 0  # of no other function: Numba begins with 1
        return super()._compile_bytecode()


class KernelLocator(UserProvidedCacheLocator):
    """Numba's place for the compiled kernels of a file: of this package by its folder, of others by their path."""

    def __init__(self, py_func, py_file):
        super().__init__(py_func, py_file)
        folder = Path(py_file).parent
        if CORE in (folder, *folder.parents):
            self._cache_path = str(Path(config.CACHE_DIR) / folder.name)


class KernelCacheImpl(CompileResultCacheImpl):
    """Asks for that place first, and has the callees of a kernel loaded before it."""

    _locator_classes: ClassVar = [KernelLocator, *CompileResultCacheImpl._locator_classes]

    def reduce(self, data):
        """Return what is saved of a compiled kernel: its callees in place, and what Numba saves."""
        called = [function.name for function in data.library._final_module.functions if function.name in _IN_PLACE]
        own = data.fndesc.mangled_name
        return {symbol: _IN_PLACE[symbol] for symbol in called if symbol != own}, super().reduce(data)

    def rebuild(self, target_context, payload):
        """Return a compiled kernel out of what was saved, or None where one of its callees has another symbol now."""
        called, reduced = payload
        for symbol, (module, name, arguments) in called.items():
            if symbol not in _IN_PLACE:
                getattr(import_module(module), name).compile(arguments)
            if symbol not in _IN_PLACE:
                return None
        own = reduced[1]
        # Numba takes the symbols that code from the cache defines from the code for callers, where ours may have none
        symbols = {own.llvm_func_name, own.llvm_cpython_wrapper_name}
        target_context.codegen()._engine._defined_symbols |= symbols
        return super().rebuild(target_context, reduced)


class KernelCache(FunctionCache):
    """Numba's cache of a kernel that may be called in place; files that cannot be read are dropped."""

    _impl_class = KernelCacheImpl

    def __init__(self, function, *, copied: bool):
        super().__init__(function)
        self._copied = copied or not _has_symbol(function)

    def load_overload(self, sig, target_context):
        """Load what has been compiled for a signature."""
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # a file cut short raises whatever pickle comes upon
            self.flush()
            return None
        if found is not None and not list(found.library._shared_module.functions):
            self._note(sig, found)
        return found

    def save_overload(self, sig, data):
        """Save what has been compiled for a signature."""
        if not self._copied and str(data.library.get_function(data.fndesc.mangled_name)).count("\n") > LONG:
            data.library._shared_module = parse_assembly("")  # callers declare what they call
            self._note(sig, data)
        super().save_overload(sig, data)

    def _note(self, sig, data):
        function = self._py_func
        _IN_PLACE[data.fndesc.mangled_name] = (function.__module__, function.__qualname__, sig)
