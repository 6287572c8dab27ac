"""Public names that are imported when they are asked for: to import their package costs nothing."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_demand(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's `__getattr__` and `__dir__`; `homes` says which of its modules a name is in.

    A name that is its own home is a module. No other module may be called like a name: Python would put the
    module in its place when it is imported.
    """

    def get(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{homes[name]}")
        found = module if homes[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, found)
        return found

    return get, lambda: sorted(homes)
