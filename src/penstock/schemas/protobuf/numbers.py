"""The numbers of fields and of enum values: a name keeps its number, and no number is given twice.

A number stands for a field in every message that was ever written. So it comes from the versions that the
registry has, never from the order in which a class declares its fields; a field that is gone leaves its
number reserved.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto

F = FieldDescriptorProto
Form = tuple[str, str]  # "", "repeated" or "map", and the name of the type
Range = tuple[int, int]  # its first and its last number
_PROTOBUFS_OWN = range(19_000, 20_000)


@dataclass(frozen=True)
class Numbered:
    """What one version of a message or an enum has under which numbers."""

    numbers: Mapping[str, int]
    forms: Mapping[str, Form]
    reserved: tuple[Range, ...]
    reserved_names: tuple[str, ...]


@dataclass(frozen=True)
class Numbering:
    """The numbers of a new version, and those that it may not use."""

    numbers: Mapping[str, int]
    reserved: tuple[Range, ...]
    reserved_names: tuple[str, ...]


def of_message(message: DescriptorProto) -> Numbered:
    """The numbers of a message's fields."""
    maps = {each.name for each in message.nested_type if each.options.map_entry}
    return Numbered(
        {field.name: field.number for field in message.field},
        {field.name: _form(field, maps) for field in message.field},
        tuple((each.start, each.end - 1) for each in message.reserved_range),
        tuple(message.reserved_name),
    )


def of_enum(enum: EnumDescriptorProto) -> Numbered:
    """The numbers of an enum's symbols."""
    return Numbered(
        {value.name: value.number for value in enum.value},
        {value.name: ("", "") for value in enum.value},
        tuple((each.start, each.end) for each in enum.reserved_range),
        tuple(enum.reserved_name),
    )


def _form(field: FieldDescriptorProto, maps: set[str]) -> Form:
    type_name = field.type_name.rpartition(".")[2]
    if field.label == F.LABEL_REPEATED:
        return ("map", "") if type_name in maps else ("repeated", type_name or _scalar(field))
    return "", type_name or _scalar(field)


def _scalar(field: FieldDescriptorProto) -> str:
    return F.Type.Name(field.type).removeprefix("TYPE_").lower()


def numbering(
    wanted: Mapping[str, Form],
    versions: Sequence[Numbered],
    former: Mapping[str, Sequence[str]] | None = None,
    first: int = 1,
) -> Numbering:
    """Number the names of a new version; `versions` are the earlier ones, newest first.

    A name has the number that it has in the newest version, or that one of its `former` names has there, or
    that it had in an older one as the same type. All others get numbers that were never used.
    """
    numbers = _kept(wanted, versions, former or {})
    used = {number for version in versions for number in version.numbers.values()}
    ranges = versions[0].reserved if versions else ()
    fresh = (each for each in count(first) if each not in used and _is_free(each, ranges))
    numbers |= {name: next(fresh) for name in wanted if name not in numbers}
    gone = {name for version in versions for name in version.numbers}
    names = gone.union(versions[0].reserved_names if versions else ()) - {*wanted}
    reserved = _reserved(ranges, used, set(numbers.values()))
    return Numbering(numbers, reserved, tuple(sorted(names)))


def _kept(
    wanted: Mapping[str, Form], versions: Sequence[Numbered], former: Mapping[str, Sequence[str]]
) -> dict[str, int]:
    if not versions:
        return {}
    newest = versions[0]
    kept = {name: newest.numbers[name] for name in wanted if name in newest.numbers}
    for name, form in wanted.items():
        if name not in kept:
            renamed = _renamed(form, newest, wanted, former.get(name, ()))
            found = _returned(name, form, versions) if renamed is None else renamed
            if found is not None and found not in kept.values():
                kept[name] = found
    return kept


def _renamed(form: Form, newest: Numbered, wanted: Mapping[str, Form], former: Sequence[str]) -> int | None:
    names = (each for each in former if each not in wanted and newest.forms.get(each) == form)
    return next((newest.numbers[each] for each in names), None)


def _returned(name: str, form: Form, versions: Sequence[Numbered]) -> int | None:
    """The number of a field that was gone for a while, unless it comes back as another type."""
    newest, *older = versions
    last = next((each for each in older if name in each.numbers), None)
    if last is None or last.forms[name] != form or last.numbers[name] in newest.numbers.values():
        return None
    return last.numbers[name]


def _is_free(number: int, ranges: Sequence[Range]) -> bool:
    return number not in _PROTOBUFS_OWN and not any(low <= number <= high for low, high in ranges)


def _reserved(ranges: Sequence[Range], used: set[int], taken: set[int]) -> tuple[Range, ...]:
    """The ranges without the numbers that are taken again, and every other number that was once used."""
    kept = [part for each in ranges for part in _without(each, taken)]
    kept += [(number, number) for number in used - taken if _is_free(number, kept)]
    return tuple(sorted(kept))


def _without(given: Range, taken: set[int]) -> Iterator[Range]:
    low, high = given
    for number in sorted(each for each in taken if low <= each <= high):
        if low < number:
            yield low, number - 1
        low = number + 1
    if low <= high:
        yield low, high
