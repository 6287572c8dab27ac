"""A fingerprint of code: a snapshot is good only for the code that made it."""

import dataclasses
import hashlib
import inspect
import types
from collections.abc import Iterator, Mapping
from typing import Any

_SCALAR = (str, bytes, int, float, bool, type(None))


def fingerprint(*parts: Any) -> str:
    """Return what changes when these change: functions, classes and values.

    A function is its code, and the functions and classes of its own package and the values that it names; a
    class is its fields and methods. What they reach in other packages is not looked at.
    """
    text = "\n".join(line for each in parts for line in _Walk(_package(each)).texts(each))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _package(thing: Any) -> str:
    return (getattr(thing, "__module__", None) or "").partition(".")[0]


class _Walk:
    """Goes through code once; what was seen is not seen again."""

    def __init__(self, package: str) -> None:
        self._package, self._seen = package, set[int]()

    def texts(self, thing: Any) -> Iterator[str]:
        if isinstance(thing, _SCALAR):
            yield repr(thing)
        elif id(thing) not in self._seen:
            self._seen.add(id(thing))
            yield from self._inside(thing)

    def _inside(self, thing: Any) -> Iterator[str]:
        match thing:
            case types.CodeType():
                yield from self._code(thing)
            case types.FunctionType() | types.MethodType():
                yield from self._function(thing)
            case type():
                yield from self._class(thing)
            case Mapping():
                yield from self._all(each for item in thing.items() for each in item)
            case tuple() | list():
                yield from self._all(thing)
            case set() | frozenset():
                yield repr(sorted(repr(each) for each in thing))
            case _ if dataclasses.is_dataclass(thing):
                held = {field.name: getattr(thing, field.name) for field in dataclasses.fields(thing)}
                yield from self._all((type(thing).__qualname__, held))
            case _:
                yield getattr(thing, "__qualname__", type(thing).__qualname__)

    def _all(self, things: Any) -> Iterator[str]:
        for each in things:
            yield from self.texts(each)

    def _function(self, function: Any) -> Iterator[str]:
        function = getattr(function, "__func__", function)
        yield from self._all(getattr(function, "registry", {}).values())  # of singledispatch
        yield from self.texts(getattr(function, "__wrapped__", None))
        yield from self.texts(function.__code__)
        cells = [cell.cell_contents for cell in (function.__closure__ or ())]
        for value in (*cells, *_named(function.__code__, function.__globals__)):
            if _package(value) == self._package and isinstance(value, types.FunctionType | type):
                yield from self.texts(value)
            elif isinstance(value, _SCALAR):
                yield repr(value)
            elif dataclasses.is_dataclass(value) and not isinstance(value, type):
                yield from self.texts(value)

    def _code(self, code: types.CodeType) -> Iterator[str]:
        yield f"{code.co_name} {code.co_code.hex()} {code.co_names} {code.co_varnames}"
        yield from self._all(code.co_consts)

    def _class(self, cls: type) -> Iterator[str]:
        yield f"{cls.__qualname__} {sorted((k, str(v)) for k, v in inspect.get_annotations(cls).items())}"
        own = {name: value for name, value in vars(cls).items() if not name.startswith("__")}
        yield from self._all(value for _, value in sorted(own.items()))


def _named(code: types.CodeType, scope: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what the names in code stand for, those of nested functions included."""
    yield from (scope[name] for name in code.co_names if name in scope)
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _named(each, scope)
