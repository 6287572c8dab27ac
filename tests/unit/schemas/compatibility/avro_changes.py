"""Random Avro schemas, random changes to them, and data that reaches every corner of a schema."""

import copy
from itertools import zip_longest

from hypothesis import strategies as st

FIELDS = ["a", "b", "c", "d", "e"]
SYMBOLS = ["RED", "GREEN", "BLUE", "GREY"]
PRIMITIVES = ["null", "boolean", "int", "long", "float", "double", "bytes", "string"]
DEFAULTS = {"null": None, "boolean": True, "int": 7, "long": 8, "float": 1.5, "double": 2.5, "string": "x"}
# In one union fastavro's writer can't distinguish these by the datum.
ALIKE = [{"int", "long"}, {"float", "double"}, {"string", "enum"}, {"bytes", "fixed"}]


class Names:
    def __init__(self):
        self.count = 0

    def new(self):
        self.count += 1
        return f"N{self.count}"


def kind_of(node):
    return "union" if isinstance(node, list) else node["type"] if isinstance(node, dict) else node


@st.composite
def types(draw, names, depth=2, enclosing=None):
    kinds = [*PRIMITIVES, "enum", "fixed"]
    if depth:
        kinds += ["record", "array", "map", "union"] * 2
    kind = draw(st.sampled_from(kinds))
    return draw(of_kind(kind, names, depth, enclosing))


@st.composite
def of_kind(draw, kind, names, depth, enclosing):
    inner = types(names, depth - 1, enclosing) if depth else None
    if kind == "enum":
        symbols = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, max_size=3, unique=True))
        return {"type": "enum", "name": names.new(), "symbols": symbols}
    if kind == "fixed":
        return {"type": "fixed", "name": names.new(), "size": draw(st.integers(1, 3))}
    if kind == "array":
        return {"type": "array", "items": draw(inner)}
    if kind == "map":
        return {"type": "map", "values": draw(inner)}
    if kind == "union":
        return clean_union(draw(st.lists(inner, min_size=1, max_size=3)))
    if kind == "record":
        return draw(records(names, depth))
    return kind


@st.composite
def records(draw, names, depth=2):
    name = names.new()
    fields = []
    for field in draw(st.lists(st.sampled_from(FIELDS), min_size=1, max_size=3, unique=True)):
        fields.append(
            {"name": field, "type": draw(types(names, depth - 1, name) if depth else types(names, 0))}
        )
    if draw(st.integers(0, 5)) == 0:
        fields.append({"name": "next", "type": ["null", name]})
    return {"type": "record", "name": name, "fields": fields}


def clean_union(branches):
    kept = []
    for branch in branches:
        if isinstance(branch, list):
            continue
        kinds = {kind_of(other) for other in kept}
        alike = any(kind_of(branch) in group and group & kinds for group in ALIKE)
        named = isinstance(branch, dict) and "name" in branch
        if not alike and (named or kind_of(branch) not in kinds):
            kept.append(branch)
    return kept or ["null"]


def slots(node, found=None):
    """Every place that holds a type, as (container, key)."""
    found = [] if found is None else found
    if isinstance(node, list):
        for position, branch in enumerate(node):
            found.append((node, position))
            slots(branch, found)
    elif isinstance(node, dict):
        for key in ("items", "values"):
            if key in node:
                found.append((node, key))
                slots(node[key], found)
        for field in node.get("fields", []):
            found.append((field, "type"))
            slots(field["type"], found)
    return found


def renamed(node, old, new):
    if isinstance(node, list):
        return [renamed(branch, old, new) for branch in node]
    if isinstance(node, dict):
        return {key: renamed(value, old, new) if key != "aliases" else value for key, value in node.items()}
    return new if node == old else node


@st.composite
def changes(draw, schema, names):
    """The schema after one to three random changes."""
    holder = {"type": copy.deepcopy(schema)}
    for _ in range(draw(st.integers(1, 3))):
        container, key = draw(st.sampled_from([(holder, "type"), *slots(holder["type"])]))
        container[key] = draw(change(container[key], names))
        if isinstance(container, list):
            container[:] = clean_union(container)
    return holder["type"]


@st.composite
def change(draw, node, names):
    kind = kind_of(node)
    options = {
        "record": change_record,
        "enum": change_enum,
        "fixed": change_fixed,
        "union": change_union,
    }
    what = draw(st.sampled_from(["own", "own", "own", "null", "replace"]))
    if what == "null" and kind != "union":
        return clean_union(draw(st.permutations([node, "null"])))
    if what == "own" and kind in options:
        return draw(options[kind](node, names))
    if kind in PRIMITIVES:
        return draw(st.sampled_from(PRIMITIVES))
    return draw(types(names, 1)) if what == "replace" else node


@st.composite
def change_record(draw, node, names):
    node = copy.deepcopy(node)
    fields = node["fields"]
    what = draw(st.sampled_from(["add", "add", "remove", "rename", "order", "name", "alias"]))
    if what == "add":
        free = [name for name in FIELDS if name not in {field["name"] for field in fields}]
        fields.append(draw(new_field(draw(st.sampled_from(free or ["z"])), names)))
    elif what == "remove" and fields:
        fields.pop(draw(st.integers(0, len(fields) - 1)))
    elif what == "rename" and fields:
        field = draw(st.sampled_from(fields))
        aliases = [field["name"]] if draw(st.booleans()) else []
        field.update(name=f"{field['name']}2", aliases=aliases)
    elif what == "order":
        node["fields"] = list(draw(st.permutations(fields)))
    elif what in ("name", "alias"):
        old = node["name"]
        node = renamed(node, old, names.new())
        node["aliases"] = [old] if what == "alias" else []
    return node


@st.composite
def new_field(draw, name, names):
    if draw(st.booleans()):
        type_ = draw(st.sampled_from(sorted(DEFAULTS)))
        return {"name": name, "type": type_, "default": DEFAULTS[type_]}
    return {"name": name, "type": draw(types(names, 1))}


@st.composite
def change_enum(draw, node, names):
    symbols = draw(st.lists(st.sampled_from(SYMBOLS), min_size=1, max_size=4, unique=True))
    changed = {**node, "symbols": symbols}
    changed.pop("default", None)
    if draw(st.booleans()):
        changed["default"] = symbols[0]
    return changed


@st.composite
def change_fixed(draw, node, names):
    if draw(st.booleans()):
        return {**node, "size": draw(st.integers(1, 3))}
    return {**node, "name": names.new(), "aliases": draw(st.sampled_from([[], [node["name"]]]))}


@st.composite
def change_union(draw, node, names):
    what = draw(st.sampled_from(["add", "remove", "order", "unwrap"]))
    if what == "add":
        return clean_union([*node, draw(types(names, 1))])
    if what == "remove" and len(node) > 1:
        return [branch for branch in node if branch is not draw(st.sampled_from(node))] or ["null"]
    if what == "unwrap":
        return draw(st.sampled_from(node))
    return list(draw(st.permutations(node)))


@st.composite
def pairs(draw):
    """A writer's schema and a reader's that came from it."""
    names = Names()
    writer = draw(st.one_of(records(names), records(names), types(names)))
    return writer, draw(changes(writer, names))


CORNERS = {
    "null": [None],
    "boolean": [True, False],
    "int": [0, -(2**31), 2**31 - 1],
    "long": [0, -(2**63), 2**63 - 1],
    "float": [0.0, -1.5],
    "double": [0.0, 1e300],
    "bytes": [b"", b"\xff\xfe", b"text"],
    "string": ["", "é✓"],
}


def data(node, named=None, depth=1):
    """Data that reach every branch and symbol of a schema at least once."""
    named = {} if named is None else named
    if isinstance(node, str):
        return CORNERS[node] if node in CORNERS else data(named[node], named, depth - 1)
    if isinstance(node, list):
        return [tagged(branch, datum) for branch in node for datum in branch_data(branch, named, depth)]
    named[node.get("name")] = node
    return complex_data(node, named, depth)


def branch_data(branch, named, depth):
    again = isinstance(branch, str) and branch not in CORNERS
    return [] if again and depth <= 0 else data(branch, named, depth)


def tagged(branch, datum):
    named = isinstance(branch, dict) and branch["type"] == "record"
    name = branch["name"] if named else branch if isinstance(branch, str) and branch not in CORNERS else None
    return (name, datum) if name and isinstance(datum, dict) else datum


def complex_data(node, named, depth):
    if node["type"] == "enum":
        return list(node["symbols"])
    if node["type"] == "fixed":
        return [bytes(range(node["size"]))]
    if node["type"] == "array":
        return [data(node["items"], named, depth), []]
    if node["type"] == "map":
        return [{f"k{i}": value for i, value in enumerate(data(node["values"], named, depth))}, {}]
    columns = {field["name"]: data(field["type"], named, depth) for field in node["fields"]}
    rows = list(zip_longest(*columns.values(), fillvalue=...)) or [()]
    firsts = [column[0] if column else None for column in columns.values()]
    return [
        {
            name: first if value is ... else value
            for name, value, first in zip(columns, row, firsts, strict=True)
        }
        for row in rows
    ]
