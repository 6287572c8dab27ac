"""Two descriptions of state compared: what of it can't be brought to what a flow would keep now."""

from collections.abc import Iterator

from penstock.documents import Json
from penstock.process.state.description import FieldDescription, StateDescription, Written

_WIDER = {
    ("tinyint", "smallint"),
    ("tinyint", "int"),
    ("tinyint", "bigint"),
    ("smallint", "int"),
    ("smallint", "bigint"),
    ("int", "bigint"),
    ("float", "double"),
}


def difficulties(before: StateDescription, after: StateDescription) -> Iterator[str]:
    """Yield what of state that was kept before can't be brought to what is kept now."""
    for was, would_be in zip(_spelled(before), _spelled(after), strict=True):
        if was != would_be:
            yield f"it was {was}, and would be {would_be}"
    yield from _columns_differ(before, after)
    for name, column in before.columns.items():
        now = after.columns.get(name)
        if now is not None:
            wider = after.declared and name not in after.by
            yield from _names_differ(name, column, now)
            yield from _types_differ(name, column.type, now.type, wider=wider)


def _spelled(state: StateDescription) -> tuple[str, str, str]:
    return state.kind, f"by {', '.join(state.by) or 'nothing'}", f"in {state.buckets} buckets"


def _columns_differ(before: StateDescription, after: StateDescription) -> Iterator[str]:
    gone = [name for name in before.columns if name not in after.columns]
    come = [name for name in after.columns if name not in before.columns]
    if gone:
        yield f"it had {', '.join(gone)}"
    if come and not after.declared:
        yield f"it would have {', '.join(come)}"


def _names_differ(path: str, before: FieldDescription, after: FieldDescription) -> Iterator[str]:
    """Frames may have any name that a field has had: going back to an older one would not find it."""
    known = {after.name, *after.names}
    lost = [name for name in (before.name, *before.names) if name not in known]
    if lost:
        yield f"{path} was called {', '.join(lost)}, which no upcaster says"


def _types_differ(path: str, before: Json, after: Json, *, wider: bool = False) -> Iterator[str]:
    match before, after:
        case {"list": one}, {"list": other}:
            yield from _types_differ(path, one, other)
        case {"map": one}, {"map": other}:
            yield from _types_differ(path, one, other)
        case {"struct": one}, {"struct": other}:
            yield from _fields_differ(path, one, other)
        case _ if before != after and not (wider and (before, after) in _WIDER):
            yield f"{path} was {_kind(before)}, and would be {_kind(after)}"


def _fields_differ(path: str, before: Written, after: Written) -> Iterator[str]:
    fields = {name: FieldDescription.read(each) for name, each in before.items()}
    for name, field in ((name, FieldDescription.read(each)) for name, each in after.items()):
        if name in fields:
            yield from _names_differ(f"{path}.{name}", fields[name], field)
            yield from _types_differ(f"{path}.{name}", fields[name].type, field.type)
        elif field.required:
            yield f"{path}.{field.name} is new, and has no default"


def _kind(type: Json) -> str:
    return type if isinstance(type, str) else f"a {next(iter(type))}"
