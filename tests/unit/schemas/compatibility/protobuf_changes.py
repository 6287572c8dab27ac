"""Random Protobuf files, random changes to them, and messages of them."""

import copy

from google.protobuf.descriptor_pb2 import FieldDescriptorProto as F
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from hypothesis import strategies as st

VALUES = {
    F.TYPE_INT32: [0, 1, -1, -(2**31), 2**31 - 1],
    F.TYPE_SINT32: [0, 1, -1, -(2**31)],
    F.TYPE_SFIXED32: [0, -1, 2**31 - 1],
    F.TYPE_INT64: [0, 1, -1, -(2**63), 2**63 - 1],
    F.TYPE_SINT64: [0, -1, 2**63 - 1],
    F.TYPE_SFIXED64: [0, -1, 2**63 - 1],
    F.TYPE_UINT32: [0, 1, 2**32 - 1],
    F.TYPE_FIXED32: [0, 1, 2**32 - 1],
    F.TYPE_UINT64: [0, 1, 2**64 - 1],
    F.TYPE_FIXED64: [0, 1, 2**64 - 1],
    F.TYPE_BOOL: [False, True],
    F.TYPE_FLOAT: [0.0, 1.5],
    F.TYPE_DOUBLE: [0.0, 1e300],
    F.TYPE_STRING: ["", "é✓"],
    F.TYPE_BYTES: [b"", b"\xff\xfe"],
    F.TYPE_ENUM: [0, 1, 2],
}
KINDS = [*VALUES, F.TYPE_MESSAGE]


@st.composite
def fields(draw, number, syntax):
    kind = draw(st.sampled_from(KINDS))
    label = draw(st.sampled_from(["one", "one", "many", "map", "either"] + ["must"] * (syntax == "proto2")))
    default = draw(st.booleans()) and syntax == "proto2" and kind == F.TYPE_INT32
    name = draw(st.sampled_from([f"f{number}"] * 6 + ["g"]))
    return {"number": number, "name": name, "kind": kind, "label": label, "default": default}


@st.composite
def files(draw):
    """A file as a plain value: a syntax, an enum's numbers, and the fields of two messages."""
    syntax = draw(st.sampled_from(["proto2", "proto3", "proto3"]))
    numbers = st.lists(st.integers(1, 5), max_size=4, unique=True)
    messages = [[draw(fields(number, syntax)) for number in draw(numbers)] for _ in range(2)]
    return {"syntax": syntax, "enum": draw(st.sampled_from([2, 3])), "messages": messages}


@st.composite
def changes(draw, file):
    """The file after one or two changes."""
    changed = copy.deepcopy(file)
    for _ in range(draw(st.integers(1, 2))):
        message = draw(st.sampled_from(changed["messages"]))
        what = draw(st.sampled_from(["add", "drop", "field", "kind", "kind", "label", "enum"]))
        place = draw(st.integers(0, len(message) - 1)) if message else None
        free = [number for number in range(1, 7) if number not in {field["number"] for field in message}]
        if what == "add" or place is None:
            message.append(draw(fields(draw(st.sampled_from(free)), file["syntax"])))
        elif what == "drop":
            message.pop(place)
        elif what == "enum":
            changed["enum"] = 5 - changed["enum"]
        else:
            fresh = draw(fields(message[place]["number"], file["syntax"]))
            message[place] = fresh if what == "field" else {**message[place], what: fresh[what]}
    return changed


@st.composite
def pairs(draw):
    writer = draw(files())
    return writer, draw(changes(writer))


def descriptor(file):
    """The file's descriptor."""
    result = FileDescriptorProto(name="random.proto", package="r", syntax=file["syntax"])
    enum = result.enum_type.add(name="E")
    for number in range(file["enum"]):
        enum.value.add(name=f"V{number}", number=number)
    for position, described in enumerate(file["messages"]):
        message = result.message_type.add(name=f"M{position}")
        for field in described:
            taken = {other.name for other in message.field}
            name = f"f{field['number']}" if field["name"] in taken else field["name"]
            add_field(message, {**field, "name": name}, position)
        if any(field["label"] == "either" for field in described):
            message.oneof_decl.add(name="o")
    return result


def add_field(message, field, position):
    # The first message holds the second; the second only itself, so that values stay finite.
    inner = {F.TYPE_MESSAGE: ".r.M1", F.TYPE_ENUM: ".r.E"}.get(field["kind"])
    label = {"many": F.LABEL_REPEATED, "map": F.LABEL_REPEATED, "must": F.LABEL_REQUIRED}.get(
        field["label"], 1
    )
    kind = field["kind"]
    if kind == F.TYPE_MESSAGE and field["label"] == "must":
        label = F.LABEL_OPTIONAL
    if field["label"] == "map":
        entry = message.nested_type.add(name=f"{field['name'].capitalize()}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=F.TYPE_STRING, label=1)
        entry.field.add(name="value", number=2, type=kind, label=1, type_name=inner)
        kind, inner = F.TYPE_MESSAGE, f".r.M{position}.{entry.name}"
    added = message.field.add(
        name=field["name"], number=field["number"], type=kind, label=label, type_name=inner
    )
    if field["label"] == "either":
        added.oneof_index = 0
    if field["default"] and added.type == F.TYPE_INT32 and label == 1:
        added.default_value = "5"


@st.composite
def filled(draw, message, depth=2):
    """A message with random fields set."""
    for field in message.DESCRIPTOR.fields:
        if field.is_required or draw(st.integers(0, 3)):
            set_field(draw, message, field, depth)
    return message


def set_field(draw, message, field, depth):
    if field.message_type and field.message_type.GetOptions().map_entry:
        set_map(draw, getattr(message, field.name), field.message_type.fields_by_name["value"], depth)
    elif field.message_type and depth:
        target = getattr(message, field.name)
        target = target.add() if field.is_repeated else target
        draw(filled(target, depth - 1))
        target.SetInParent()
    elif field.message_type is None and field.is_repeated:
        getattr(message, field.name).extend(draw(st.lists(scalars(field), max_size=2)))
    elif field.message_type is None:
        setattr(message, field.name, draw(scalars(field)))


def set_map(draw, target, value, depth):
    for key in draw(st.lists(st.sampled_from(["", "k", "l"]), max_size=2, unique=True)):
        if value.message_type is None:
            target[key] = draw(scalars(value))
        elif depth:
            draw(filled(target[key], depth - 1))


def scalars(field):
    values = VALUES[field.type]
    if field.enum_type:
        values = [value.number for value in field.enum_type.values]
    return st.sampled_from(values)
