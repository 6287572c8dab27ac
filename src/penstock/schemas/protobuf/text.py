"""The .proto text of an event class, with numbers that follow those of earlier versions."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum

from penstock.errors import EventTypeError
from penstock.events.event import Event
from penstock.events.kinds import Choice, Fixed, Kind, Many, Mapped, Maybe, Record, Scalar, fields_of
from penstock.schemas.compatibility.protobuf import ProtobufSchema
from penstock.schemas.compatibility.protobuf.canonical import json_name
from penstock.schemas.protobuf.numbers import Form, Numbering, Range, numbering, of_enum, of_message
from penstock.schemas.protobuf.symbols import UNSPECIFIED, prefix, symbols_of

WRAPPED = "wrapped"  # the only field of a message around what Protobuf can't put into lists and maps
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LAST_NUMBER = 2**29 - 1
_SCALARS: dict[type, str] = {
    int: "int64",
    float: "double",
    bool: "bool",
    bytes: "bytes",
    datetime: "google.protobuf.Timestamp",
}
_HEAD = 'syntax = "proto3";\n\n{package}import "google/protobuf/timestamp.proto";\n\n'


def proto_text(
    cls: type[Event],
    versions: Sequence[ProtobufSchema] = (),
    former: Mapping[str, Sequence[str]] | None = None,
) -> str:
    """Return the .proto text of an event class; `versions` are the earlier ones, newest first.

    >>> from dataclasses import dataclass
    >>> from datetime import datetime
    >>> @dataclass(frozen=True)
    ... class Click(Event):
    ...     at: datetime
    >>> print(proto_text(Click).split("\\n\\n")[2])
    message Click {
      string id = 1;
      google.protobuf.Timestamp at = 2;
    }
    <BLANKLINE>

    `former` are the names that fields had before. All other types stand inside of the class's message, so
    that they can come and go.
    """
    *package, name = (_identifier(part) for part in cls.event_type.split("."))
    writer = _Writer(".".join(["", *package, name]), versions)
    fields = {field.name: field.kind for field in fields_of(cls)}
    own = writer.fields("", fields, former or {})
    head = _HEAD.format(package=f"package {'.'.join(package)};\n\n" if package else "")
    return head + "\n".join([f"message {name} {{", *own, *writer.inner, "}"]) + "\n"


class _Writer:
    """Writes messages and enums; `inner` are the lines of those inside of the main message, by name."""

    def __init__(self, main: str, versions: Sequence[ProtobufSchema]) -> None:
        self._main, self._versions = main, versions
        self._met: dict[str, object] = {}
        self._types: dict[str, list[str]] = {}

    @property
    def inner(self) -> list[str]:
        return [line for name in sorted(self._types) for line in self._types[name]]

    def fields(
        self, owner: str, kinds: Mapping[str, Kind], former: Mapping[str, Sequence[str]] | None = None
    ) -> list[str]:
        """The lines of a message; `owner` is its name, or nothing for the main one."""
        _check_names(owner, kinds)
        members = {name: self._member(f"{owner}{_camel(name)}", kind) for name, kind in kinds.items()}
        path = f"{self._main}.{owner}" if owner else self._main
        earlier = [of_message(each.messages[path]) for each in self._versions if path in each.messages]
        numbered = numbering({name: form for name, (form, _) in members.items()}, earlier, former)
        types = {name: type for name, (_, type) in members.items()}
        return _lines(numbered, lambda name, number: f"{types[name]} {name} = {number};")

    def _member(self, place: str, kind: Kind) -> tuple[Form, str]:
        """The form and the type of a field; `place` names the message around it, if there has to be one."""
        match kind:
            case Maybe(inner):
                type = self._single(place, inner)
                return ("", _last(type)), f"optional {type}"
            case Many(item):
                type = self._single(place, item)
                return ("repeated", _last(type)), f"repeated {type}"
            case Mapped(value):
                return ("map", ""), f"map<string, {self._single(place, value)}>"
        type = self._single(place, kind)
        return ("", _last(type)), type

    def _single(self, place: str, kind: Kind) -> str:
        match kind:
            case Scalar(python):
                return _SCALARS.get(python, "string")
            case Fixed():
                return "string"
            case Choice(enum):
                return self._enum(enum)
            case Record(cls):
                return self._record(cls)
        name = f"{place}Wrapped"
        self._put(name, place, "message", lambda: self.fields(name, {WRAPPED: kind}))
        return name

    def _record(self, cls: type) -> str:
        name = cls.__name__
        kinds = {field.name: field.kind for field in fields_of(cls)}
        if is_wrapping(name, [*kinds]):
            raise EventTypeError(f"{name} looks like one of Penstock's own messages", hint="rename it")
        self._put(name, cls, "message", lambda: self.fields(name, kinds))
        return name

    def _enum(self, enum: type[Enum]) -> str:
        symbols = symbols_of(enum)
        if symbols is None:
            return "string"
        self._put(enum.__name__, enum, "enum", lambda: self._symbols(enum.__name__, [*symbols.values()]))
        return enum.__name__

    def _symbols(self, name: str, symbols: list[str]) -> list[str]:
        path, nothing = f"{self._main}.{name}", prefix(name) + UNSPECIFIED
        earlier = [of_enum(each.enums[path].descriptor) for each in self._versions if path in each.enums]
        ordered = sorted(symbols, key=lambda each: each != nothing)
        numbered = numbering(dict.fromkeys(ordered, ("", "")), earlier, first=int(nothing not in symbols))
        if 0 not in numbered.numbers.values():
            numbered = _with_nothing(numbered, nothing)
        return _lines(numbered, lambda name, number: f"{name} = {number};")

    def _put(self, name: str, what: object, keyword: str, body: Callable[[], list[str]]) -> None:
        """Write a type once; Protobuf knows types by their name."""
        known = self._met.setdefault(name, what)
        if known != what:
            hint = "rename one: Protobuf knows types by their name"
            raise EventTypeError(f"two classes are called {name}: {known} and {what}", hint=hint)
        if name not in self._types:
            lines = ["", f"  {keyword} {name} {{", *(f"  {line}" for line in body()), "  }"]
            self._types[name] = lines


def is_wrapping(name: str, fields: Sequence[str]) -> bool:
    """Whether a message is one that Penstock puts around a list, a map or what may be null."""
    return name.endswith("Wrapped") and [*fields] == [WRAPPED]


def _with_nothing(numbered: Numbering, name: str) -> Numbering:
    """Give the number 0, which every enum has to have, to what was not given."""
    reserved = tuple(each for each in numbered.reserved if each != (0, 0))
    names = tuple(each for each in numbered.reserved_names if each != name)
    return Numbering({**numbered.numbers, name: 0}, reserved, names)


def _lines(numbered: Numbering, line: Callable[[str, int], str]) -> list[str]:
    """The lines of a message or an enum, in the order of their numbers."""
    lines = []
    if numbered.reserved:
        lines.append(f"  reserved {', '.join(map(_range, numbered.reserved))};")
    if numbered.reserved_names:
        quoted = (f'"{name}"' for name in numbered.reserved_names)
        lines.append(f"  reserved {', '.join(quoted)};")
    ordered = sorted(numbered.numbers.items(), key=lambda each: each[1])
    return [*lines, *(f"  {line(name, number)}" for name, number in ordered)]


def _range(given: Range) -> str:
    low, high = given
    if low == high:
        return str(low)
    return f"{low} to {'max' if high >= _LAST_NUMBER else high}"


def _check_names(owner: str, names: Iterable[str]) -> None:
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(json_name(name), name)
        if other != name or not _NAME.fullmatch(name):
            why = f"is called {other!r} in JSON, too" if other != name else "is not of letters, digits and _"
            where = f"{owner}.{name}" if owner else name
            raise EventTypeError(f"field {where!r} {why}, which Protobuf does not take", hint="rename it")


def _identifier(part: str) -> str:
    name = re.sub(r"[^A-Za-z0-9_]", "_", part)
    return f"_{name}" if name[:1].isdigit() else name


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _last(type: str) -> str:
    return type.rpartition(".")[2]
