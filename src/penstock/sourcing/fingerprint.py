"""A fingerprint of code: a snapshot is good only for the code that made it."""

import dataclasses
import functools
import hashlib
import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

_PLAIN = (str, bytes, int, float, bool, complex, type(None), type(Ellipsis))
_GENERATED = {"__init__", "__repr__", "__eq__", "__hash__", "__setattr__", "__delattr__", "__replace__"}
_BOOKKEEPING = {"__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__dataclass_fields__"}
_CODE = (types.FunctionType, types.BuiltinFunctionType, type)
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def fingerprint(function: Callable[..., Any], *more: Any) -> str:
    """Return what changes when a function, or what it reaches, or one of more things changes.

    A function is its code, its defaults, and what it names: functions, classes and modules of its own
    package, and values. A class is its fields, methods and bases. What other packages hold is not looked at.
    """
    walk = _Walk(_package(function))
    text = "\n".join(line for each in (function, *more) for line in walk.texts(each))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _package(function: Any) -> str:
    """The package that a function belongs to; in Penstock, which is large, its application."""
    module = getattr(function, "__module__", None) or ""
    top = module.partition(".")[0]
    return module.rpartition(".")[0] if top == "penstock" else top


class _Walk:
    """Goes through code once; what was seen is not seen again, and stays alive until the end."""

    def __init__(self, package: str) -> None:
        self._package, self._seen = package, dict[int, object]()

    def texts(self, thing: Any) -> Iterator[str]:
        if isinstance(thing, _PLAIN):
            yield repr(thing)
        elif id(thing) not in self._seen:
            self._seen[id(thing)] = thing
            yield from self._inside(thing)

    def _inside(self, thing: Any) -> Iterator[str]:
        match thing:
            case types.CodeType():
                yield f"{thing.co_name} {thing.co_code.hex()} {thing.co_names} {thing.co_varnames}"
                yield from self._all(thing.co_consts)
            case types.FunctionType() | types.MethodType() | classmethod() | staticmethod():
                yield from self._function(getattr(thing, "__func__", thing))
            case property() | functools.cached_property():
                yield from self._all(getattr(thing, each, None) for each in ("fget", "func"))
            case functools.partial():
                yield from self._all((thing.func, thing.args, thing.keywords))
            case type() if self._is_own(thing) or dataclasses.is_dataclass(thing):
                yield from self._class(thing)
            case type():
                yield f"{thing.__module__}.{thing.__qualname__}"
            case Mapping():
                yield from self._all(each for item in thing.items() for each in item)
            case tuple() | list():
                yield from self._all(thing)
            case set() | frozenset():
                yield repr(sorted(repr(each) for each in thing))
            case _:
                yield from self._value(thing)

    def _value(self, thing: Any) -> Iterator[str]:
        """A value is its class and what it holds, or how it spells itself."""
        yield f"{type(thing).__module__}.{type(thing).__qualname__}"
        if dataclasses.is_dataclass(thing):
            yield from self._all(getattr(thing, field.name) for field in dataclasses.fields(thing))
        elif _ADDRESS.search(repr(thing)):
            yield from self._all(sorted(getattr(thing, "__dict__", {}).items()))
        else:
            yield repr(thing)
        if self._is_own(type(thing)):
            yield from self.texts(type(thing))

    def _all(self, things: Iterable[Any]) -> Iterator[str]:
        for each in things:
            yield from self.texts(each)

    def _function(self, function: Any) -> Iterator[str]:
        yield from self._all(getattr(function, "registry", {}).values())  # of singledispatch
        yield from self.texts(getattr(function, "__wrapped__", None))
        yield from self._all((function.__code__, function.__defaults__, function.__kwdefaults__))
        yield from self._all(cell.cell_contents for cell in (function.__closure__ or ()))
        for value in _named(function.__code__, function.__globals__):
            yield from self._reached(value, function.__code__)

    def _reached(self, value: Any, code: types.CodeType) -> Iterator[str]:
        if isinstance(value, types.ModuleType):
            if self._is_within(value.__name__):
                yield from self._all(vars(value)[name] for name in _names(code) if name in vars(value))
        elif self._is_own(value) or not isinstance(value, _CODE):
            yield from self.texts(value)

    def _class(self, cls: type) -> Iterator[str]:
        yield f"{cls.__qualname__} {sorted((k, str(v)) for k, v in inspect.get_annotations(cls).items())}"
        for name, value in sorted(vars(cls).items()):
            if name not in _BOOKKEEPING and not (name in _GENERATED and _is_generated(value)):
                yield name
                yield from self.texts(value)
        yield from self._all(base for base in cls.__bases__ if self._is_own(base))

    def _is_own(self, thing: Any) -> bool:
        return self._is_within(getattr(thing, "__module__", None) or "")

    def _is_within(self, module: str) -> bool:
        return module == self._package or module.startswith(f"{self._package}.")


def _is_generated(value: Any) -> bool:
    """Whether a method was written by `dataclass`."""
    code = getattr(value, "__code__", None)
    return code is None or code.co_filename == "<string>" or "dataclasses" in code.co_filename


def _names(code: types.CodeType) -> Iterator[str]:
    """Yield the names in code, those of nested functions included."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, types.CodeType):
            yield from _names(each)


def _named(code: types.CodeType, scope: Mapping[str, Any]) -> Iterator[Any]:
    """Yield what the names in code stand for."""
    return (scope[name] for name in dict.fromkeys(_names(code)) if name in scope)
