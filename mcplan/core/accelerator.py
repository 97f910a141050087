"""Faster compilation and faster kernels through private parts of Numba; `mcplan.core.compilation` works without it.

A first run takes a third of the time, and a tick about two fifths, because:

- A kernel that allocates nothing does not count references to arrays (``_nrt=False``). Kernels that allocate, or assign
  an array to a slice, do not compile this way; `jit_allocating` is for them.
- A literal that another kernel passes, as in ``row(packed, 3)``, has the type of any other number. Numba would compile
  the callee again for each literal.
- Numba generates for each kernel the function by which Python calls it. Here only kernels that Python calls have one;
  a kernel that was compiled for other kernels is compiled again when Python calls it.
- For each operator of a kernel Numba compares the compilation flags with those of every cached template, which is half
  of the time of type inference. `FrozenFlags` shortens that.
- Numba copies the code of all direct and indirect callees into a kernel, and compiles it again for each caller. Here
  only short callees, and those to be inlined, are copied. A longer callee is called by its symbol, which is the same
  in every process. The cache stores with a caller the kernels that must be loaded before it. Numba's own cache stores
  no such dependencies, so functions outside of this package that call kernels must be cached by `mcplan.core.jit`, too.
- The folder of a kernel in the cache does not depend on the folder of the package: a second clone or environment with
  the same files compiles nothing.

The private parts of Numba are the option ``_nrt``, ``get_call_template``, ``compile``, ``add_overload`` and ``_cache``
of ``Dispatcher``, ``Flags``, the compiler and its lock, the classes of the cache and of code libraries, ``rtsys``, the
function ids (``unique_id``), ``make_array`` and ``populate_array``. So it is used only with the versions of Numba that
it was tested with (`mcplan.util.kernel_cache.TESTED_NUMBA`).
"""

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numba
from llvmlite.binding import parse_assembly
from numba import config, types
from numba.core import sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.runtime.nrt import rtsys
from numba.extending import lower_builtin, type_callable
from numba.np.arrayobj import make_array, populate_array

from mcplan.util.kernel_cache import CORE

MAX_COPIED_LINES = 300
"""Lines of optimised LLVM code above which a kernel is called by its symbol, because LLVM would not inline it."""

_SYMBOLS: dict[str, tuple[str, str, tuple]] = {}
"""Module, name and argument types of each kernel of this process that others call by its symbol, keyed by symbol."""


def compile_kernel(function, options, allocates):
    """Compile a kernel with options of ``numba.njit``; ``allocates`` says whether it allocates arrays."""
    options["_nrt"] = allocates
    if _has_symbol(function):
        options["pipeline_class"] = KernelCompiler
    kernel = numba.njit(**options)(function)
    if isinstance(kernel, Dispatcher):  # otherwise compilation is disabled, and it is a plain function
        kernel._cache = KernelCache(function, always_copied=options["forceinline"])
        _distinguish_callers(kernel)
    return kernel


_is_called_by_kernel = False
_replaced: list[object] = []


@contextmanager
def _called_by_kernel() -> Iterator[None]:
    """Compile or load kernels in the block for other kernels, without the function by which Python calls them."""
    global _is_called_by_kernel
    previous, _is_called_by_kernel = _is_called_by_kernel, True
    try:
        yield
    finally:
        _is_called_by_kernel = previous


def _has_python_entry(result) -> bool:
    """Return whether Python can call a compiled kernel."""
    return result.library.get_pointer_to_function(result.fndesc.llvm_cpython_wrapper_name) != 0


def _distinguish_callers(kernel):
    """Compile a kernel for other kernels without literal types and without Python's entry; add the entry on demand."""
    get_call_template, compile_signature, add_overload = kernel.get_call_template, kernel.compile, kernel.add_overload

    def template_for_kernel(args, kws):
        args, kws = tuple(map(types.unliteral, args)), {name: types.unliteral(kind) for name, kind in kws.items()}
        with _called_by_kernel():
            return get_call_template(args, kws)

    def compile_for_caller(sig):
        with global_compiler_lock:
            args = tuple(sigutils.normalize_signature(sig)[0])
            result = kernel.overloads.get(args)
            if result is not None and not _is_called_by_kernel and not _has_python_entry(result):
                _replaced.append(kernel.overloads.pop(args))  # other kernels call its code
            return compile_signature(sig)

    def add_result(result):
        if _has_python_entry(result):
            add_overload(result)
        else:
            kernel.overloads[tuple(result.signature.args)] = result

    kernel.get_call_template, kernel.compile, kernel.add_overload = template_for_kernel, compile_for_caller, add_result


def lower_view(view, locate, axes, buffer):
    """Compile calls of ``view`` to a pointer and lengths, as `mcplan.core.jit.jit_view` describes."""

    def type_view(context):
        def view_type(*kinds):
            return types.Array(kinds[buffer].dtype, axes, "C", readonly=not kinds[buffer].mutable)

        view_type.__signature__ = inspect.signature(locate)
        return view_type

    def lower(context, builder, signature, arguments):
        integers = types.UniTuple(types.intp, 1 + axes)
        location = context.compile_internal(builder, locate, integers(*signature.args), arguments)
        first, *lengths = (builder.extract_value(location, k) for k in range(1 + axes))
        source = make_array(signature.args[buffer])(context, builder, arguments[buffer])
        strides = [source.itemsize]
        for length in reversed(lengths[1:]):
            strides.insert(0, builder.mul(strides[0], length))
        array = make_array(signature.return_type)(context, builder)
        populate_array(array, builder.gep(source.data, [first]), lengths, strides, source.itemsize, meminfo=None)
        return array._getvalue()

    type_callable(view)(type_view)
    lower_builtin(view, types.VarArg(types.Any))(lower)


def _has_symbol(function) -> bool:
    """Return whether module and name identify a function: one of this package, not local to another function."""
    return function.__module__.startswith("mcplan.") and "<locals>" not in function.__qualname__


class KernelFlags(Flags):
    """Options of a compilation; Numba copies them when the compilation starts."""

    def copy(self):
        """Return the copy that the compilation uses."""
        return FrozenFlags(self)


# not among the values of the options, because symbols and templates depend on these
KernelFlags.no_cpython_wrapper = property(lambda _: _is_called_by_kernel)


class FrozenFlags(Flags):
    """Options that no longer change: their values are collected once, instead of whenever an operator is looked up."""

    __slots__ = ("_all_values",)

    def __init__(self, flags):
        super().__init__(flags)
        self._all_values = super().values()

    def values(self):
        """Return all values by their names."""
        return self._all_values

    def copy(self):
        """Return a copy that may change."""
        return Flags(self)


class KernelCompiler(Compiler):
    """Compiles a kernel under a symbol that depends only on its module, its name and the types of its arguments.

    Numba numbers the functions of a process, and writes the number into the symbol.
    """

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.state.flags = KernelFlags(self.state.flags)

    def _compile_bytecode(self):
        self.state.func_id.unique_id = 0  # an id of no other function, since Numba counts from 1
        return super()._compile_bytecode()


class KernelLocator(UserProvidedCacheLocator):
    """Folder of a file's compiled kernels in the cache.

    For a file of this package it has the name of the file's folder, for other files Numba's own name, from the path.
    """

    def __init__(self, py_func, py_file):
        super().__init__(py_func, py_file)
        folder = Path(py_file).parent
        if CORE in (folder, *folder.parents):
            self._cache_path = str(Path(config.CACHE_DIR) / folder.name)


class KernelCacheImpl(CompileResultCacheImpl):
    """Saves and loads compiled kernels in the folder of `KernelLocator`; callees are loaded first."""

    _locator_classes: ClassVar = [KernelLocator, *CompileResultCacheImpl._locator_classes]

    def reduce(self, data):
        """Return the data to save: callees called by symbol, whether Python can call the kernel, Numba's own data."""
        called = [function.name for function in data.library._final_module.functions if function.name in _SYMBOLS]
        own = data.fndesc.mangled_name
        callees = {symbol: _SYMBOLS[symbol] for symbol in called if symbol != own}
        return callees, _has_python_entry(data), super().reduce(data)

    def rebuild(self, target_context, payload):
        """Return a compiled kernel from the saved data.

        None if one of its callees now has another symbol, or if Python calls it and cannot.
        """
        called, has_python_entry, reduced = payload
        if not has_python_entry and not _is_called_by_kernel:
            return None
        for symbol, (module, name, arguments) in called.items():
            if symbol not in _SYMBOLS:
                with _called_by_kernel():
                    getattr(import_module(module), name).compile(arguments)
            if symbol not in _SYMBOLS:
                return None
        own = reduced[1]
        # Numba takes the symbols of cached code from the part that is copied into callers, which may be empty here
        symbols = {own.llvm_func_name} | ({own.llvm_cpython_wrapper_name} if has_python_entry else set())
        target_context.codegen()._engine._defined_symbols |= symbols
        return super().rebuild(target_context, reduced)


class KernelCache(FunctionCache):
    """Numba's cache of a kernel that may be called by its symbol; unreadable files are deleted."""

    _impl_class = KernelCacheImpl

    def __init__(self, function, *, always_copied: bool):
        super().__init__(function)
        self._is_copied = always_copied or not _has_symbol(function)

    def load_overload(self, sig, target_context):
        """Load the kernel compiled for a signature.

        Numba also imports its implementations of functions and operators, for 0.2 s; only a compilation needs them.
        """
        rtsys.initialize(target_context)
        try:
            with self._guard_against_spurious_io_errors():
                loaded = self._load_overload(sig, target_context)
        except Exception:  # unpickling a truncated file may raise anything
            self.flush()
            return None
        if loaded is not None and not list(loaded.library._shared_module.functions):
            self._register(sig, loaded)
        return loaded

    def save_overload(self, sig, data):
        """Save the kernel compiled for a signature."""
        code = "" if self._is_copied else str(data.library.get_function(data.fndesc.mangled_name))
        if code.count("\n") > MAX_COPIED_LINES:
            data.library._shared_module = parse_assembly("")  # nothing to copy: callers declare the symbol
            self._register(sig, data)
        super().save_overload(sig, data)

    def _register(self, sig, data):
        function = self._py_func
        _SYMBOLS[data.fndesc.mangled_name] = (function.__module__, function.__qualname__, sig)
