"""Where Numba keeps the compiled code of kernels, and how one kernel calls another.

Numba's own cache keys a kernel by its file only: after an edit in a *callee's* file the caller would go on returning
the old answer. So the cache directory carries a hash of all files of this package, and a kernel's place in it is the
same wherever the package lies: a second clone or environment of this version compiles nothing.

Numba copies into the code of a kernel that of all kernels that it calls, and of those that these call, and compiles it
all again: once per caller, two fifths of a first run. Here that is so for what is short or to be copied in. A longer
kernel is called where it is, by its symbol, which is the same in every process; what the cache has of a caller names
the kernels that have to be there before it is loaded. Numba's ``cache=True`` knows nothing of that: a function outside
of this package that calls kernels is cached by what `mcplan.core.jit` makes of it.
"""

from importlib import import_module
from pathlib import Path
from typing import ClassVar

from llvmlite.binding import parse_assembly
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserWideCacheLocator

from mcplan.core.cache import HERE, cache_directory, exclusive

CACHE_DIRECTORY = cache_directory()

LONG = 300
"""Lines of optimised LLVM code above which a kernel is called where it is; LLVM would not copy it by itself."""

_IN_PLACE: dict[str, tuple[str, str, tuple]] = {}
"""By symbol, the kernels of this process that others call where they are: module, name, types of the arguments."""


def is_of_the_package(function) -> bool:
    """Say whether a function lies in a module of this package, and not within another function."""
    return function.__module__.startswith("mcplan.") and "<locals>" not in function.__qualname__


class KernelLocator(UserWideCacheLocator):
    """Numba's place for the compiled kernels of a file: of this package by its folder, of others by their path."""

    def __init__(self, py_func, py_file):
        super().__init__(py_func, py_file)
        folder = Path(py_file).parent
        mine = HERE in (folder, *folder.parents)
        self._cache_path = str(
            Path(CACHE_DIRECTORY) / (folder.name if mine else self.get_suitable_cache_subpath(py_file))
        )


class KernelCacheImpl(CompileResultCacheImpl):
    """Asks for that place first, and has what a kernel calls loaded before it."""

    _locator_classes: ClassVar = [KernelLocator, *CompileResultCacheImpl._locator_classes]

    def reduce(self, data):
        """Return what is saved of a compiled kernel: which ones it calls where they are, and what Numba saves."""
        called = [function.name for function in data.library._final_module.functions if function.name in _IN_PLACE]
        own = data.fndesc.mangled_name
        return {symbol: _IN_PLACE[symbol] for symbol in called if symbol != own}, super().reduce(data)

    def rebuild(self, target_context, payload):
        """Return a compiled kernel out of what was saved, or None where one that it calls has another symbol now."""
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
    """Numba's cache of a kernel, for processes that compile at the same time.

    Without a lock, two that save different signatures number them alike, and one gets the code of the other.
    """

    _impl_class = KernelCacheImpl

    def __init__(self, function, *, copied: bool):
        super().__init__(function)
        self._copied = copied or not is_of_the_package(function)

    def load_overload(self, sig, target_context):
        """Load what has been compiled for a signature."""
        found = super().load_overload(sig, target_context)
        if found is not None and not list(found.library._shared_module.functions):
            self._note(sig, found)
        return found

    def save_overload(self, sig, data):
        """Save what has been compiled for a signature."""
        if not self._copied and str(data.library.get_function(data.fndesc.mangled_name)).count("\n") > LONG:
            data.library._shared_module = parse_assembly("")  # callers declare what they call
            self._note(sig, data)
        with exclusive(Path(self.cache_path) / "lock"):
            super().save_overload(sig, data)

    def _note(self, sig, data):
        function = self._py_func
        _IN_PLACE[data.fndesc.mangled_name] = (function.__module__, function.__qualname__, sig)
