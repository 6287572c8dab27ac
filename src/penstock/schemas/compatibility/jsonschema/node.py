"""A schema inside a document, and the schemas that must hold together with it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.documents import Json
from penstock.schemas.compatibility import jsontext
from penstock.schemas.compatibility.jsonschema.dialect import Dialect
from penstock.schemas.compatibility.jsonschema.document import JsonSchema
from penstock.schemas.compatibility.jsonschema.keyword import bare, walk


@dataclass(frozen=True, eq=False)
class Node:
    """A schema, the document it belongs to, and the name of the part of it that local references mean."""

    schema: Json
    document: JsonSchema
    within: str = ""

    def get(self, keyword: str, default: Json = None) -> Json:
        """The value of a keyword; a boolean schema has none."""
        return self.schema.get(keyword, default) if isinstance(self.schema, dict) else default

    def has(self, keyword: str) -> bool:
        """Whether the keyword is there."""
        return isinstance(self.schema, dict) and keyword in self.schema

    def at(self, schema: Json) -> "Node":
        """A schema found inside this one."""
        return Node(schema, self.document, self.within)

    def branches(self, keyword: str) -> list["Node"]:
        """The schemas in a keyword that holds a list of them."""
        return [self.at(schema) for schema in self.get(keyword, [])]

    def referred(self) -> "Node | None":
        """What the `$ref` points to, if there is one."""
        if not self.has("$ref"):
            return None
        schema, within = self.document.target(self.get("$ref"), self.within)
        return Node(schema, self.document, within)


def facts(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """Every schema that certainly holds where the given ones do: also through `$ref` and `allOf`."""
    found: dict[int, Node] = {}
    pending = list(nodes)
    while pending:
        node = pending.pop(0)
        if node.schema is not True and id(node.schema) not in found:
            pending.extend(_implied(node))
            found[id(node.schema)] = node
    return tuple(node for node in found.values() if _counts(node))


def _implied(node: Node) -> Iterator[Node]:
    target = node.referred()
    if target:
        yield target
    if _counts(node):
        yield from node.branches("allOf")


def _counts(node: Node) -> bool:
    # Beside a `$ref` draft-07 ignores everything, so it proves nothing unless 2020-12 is declared.
    return not node.has("$ref") or node.document.dialect is Dialect.DRAFT_2020_12


def same(one: Node, other: Node, keywords: Iterable[str] | None = None) -> bool:
    """Whether two schemas (or some of their keywords) say the same, in documents that mean the same by it."""
    if one.document.dialect is not other.document.dialect:
        return False
    ours, theirs = _part(one, keywords), _part(other, keywords)
    if jsontext.dump_sorted(ours) != jsontext.dump_sorted(theirs):
        return False
    return not _refers(ours) or _same_targets(one, other)


def _part(node: Node, keywords: Iterable[str] | None) -> Json:
    if keywords is None:
        return bare(node.schema)
    return bare({keyword: node.get(keyword) for keyword in keywords if node.has(keyword)})


def _refers(schema: Json) -> bool:
    return any("$ref" in inner for inner in walk(schema))


def _same_targets(one: Node, other: Node) -> bool:
    definitions = one.document.definitions
    return (
        one.within == other.within and definitions is not None and definitions == other.document.definitions
    )
