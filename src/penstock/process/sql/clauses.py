"""What a query may be made of, judged by what it says: nothing in it has been looked up yet."""

from collections.abc import Collection, Iterator

from penstock.errors import FlowError
from penstock.process.spark.java import Java
from penstock.process.sql.text import QueryText, nearest
from penstock.process.sql.tree import children, expressions, items, kind, nodes, parts

_ALLOWED = frozenset(
    {
        "Project", "Filter", "Aggregate", "UnresolvedHaving", "Join", "LateralJoin", "Union", "Generate",
        "SubqueryAlias", "UnresolvedSubqueryColumnAliases", "UnresolvedWith", "UnresolvedHint", "Pivot",
        "Unpivot", "UnresolvedRelation", "UnresolvedInlineTable", "LocalRelation", "OneRowRelation",
        "UnresolvedTableValuedFunction", "UnresolvedTVFAliases",
    }
)  # fmt: skip
_LIMIT = (
    "LIMIT and OFFSET have no meaning in a stream, which has no end",
    "leave them out; `windows.top` and `ranking.top` give the greatest",
)
_REFUSED = {
    "Sort": (
        "ORDER BY has no meaning in a stream, which has no end",
        "leave it out; `joins.merged` brings events into the order of their times",
    ),
    "GlobalLimit": _LIMIT,
    "LocalLimit": _LIMIT,
    "LimitAll": _LIMIT,
    "Offset": _LIMIT,
    "Distinct": (
        "DISTINCT would keep every row in state for ever",
        "group by the columns and a window; `dedup.first` drops duplicates within a time",
    ),
    "UNION": ("UNION would keep every row in state for ever, to drop duplicates", "write UNION ALL"),
    "Except": ("EXCEPT needs the whole of both sides", "use a join"),
    "Intersect": ("INTERSECT needs the whole of both sides", "use a join"),
    "Sample": ("TABLESAMPLE gives other rows each time", "use a condition on a hash of a column"),
    "UnresolvedEventTimeWatermark": (
        "WATERMARK would be Spark's own, for which a backlog is late",
        'say watermark={"…": "30 seconds"} where the flow is described',
    ),
    "NamedStreamingRelation": ("STREAM is not said: what a flow reads are streams", "leave STREAM out"),
}
_OVER = (
    "OVER (…) is over all rows of a key, of which a stream never has the last",
    "use GROUP BY window(…); `keyed.recent`, `windows.sliding` and `ranking.top` look back at a key's events",
)
_REFUSED["WithWindowDefinition"] = _OVER
_OVERS = ("WindowExpression", "UnresolvedWindowExpression")
_STARS = ("UnresolvedStar", "UnresolvedStarExceptOrReplace", "UnresolvedRegex")
_BOUNDARIES = ("Project", "Aggregate", "Union", "UnresolvedWith", "UnresolvedHaving")


def refuse_clauses(query: Java, text: QueryText, tables: Collection[str]) -> None:
    """Refuse what is no query over the tables of the flow, and clauses that no stream can have."""
    for node in nodes(query):
        if kind(node) not in _ALLOWED:
            raise _refused(node, text)
        if kind(node) == "Join" and "Natural" in str(node.joinType()):
            raise text.refusal(
                "a NATURAL join is by all columns of the same name, `id` included",
                node,
                hint="name them: USING (…), or ON",
            )
        if kind(node) == "UnresolvedInlineTable":
            _refuse_computed(node, text)
        for expression in expressions(node):
            if kind(expression) in _OVERS:
                raise text.refusal(_OVER[0], expression, hint=_OVER[1])
    known = {*map(str.lower, tables), *_with_names(query)}
    for relation in _relations(query):
        _refuse_unknown(relation, text, known, tables)


def refuse_stars(query: Java, text: QueryText, tables: Collection[str]) -> None:
    """Refuse `*` over what the flow reads, in a query that has state.

    State would hold every column that there is, and could not go on when the class gets another one.
    """
    own = {*map(str.lower, tables)}
    for node in nodes(query):
        star = next((each for each in expressions(node) if kind(each) in _STARS), None)
        if star is not None and any(_name(each) in own for each in _named_in(node)):
            raise text.refusal(
                "* would keep every column in state, also those that a class gets later",
                star,
                hint="name the columns",
            )


def _refused(node: Java, text: QueryText) -> FlowError:
    unites = kind(node) == "Distinct" and kind(node.child()) == "Union"
    what, hint = _REFUSED.get(
        "UNION" if unites else kind(node),
        (f"{kind(node)} is no part of a flow's query", "a query is a SELECT over what the flow reads"),
    )
    return text.refusal(what, node, hint=hint)


def _refuse_computed(table: Java, text: QueryText) -> None:
    for row in items(table.rows()):
        for value in items(row):
            if any(kind(each) == "UnresolvedFunction" for each in parts(value)):
                raise text.refusal("VALUES computes a value", value, hint="write what it is")


def _refuse_unknown(relation: Java, text: QueryText, known: set[str], tables: Collection[str]) -> None:
    name = _name(relation)
    if name not in known:
        shown = ".".join(str(part) for part in items(relation.multipartIdentifier()))
        raise text.refusal(
            f"there is no table {shown!r}: a query sees what its flow reads and looks up",
            relation,
            hint=nearest(shown, tables),
        )


def _with_names(query: Java) -> Iterator[str]:
    for node in nodes(query):
        if kind(node) == "UnresolvedWith":
            yield from (str(each._1()).lower() for each in items(node.cteRelations()))


def _relations(query: Java) -> Iterator[Java]:
    return (node for node in nodes(query) if kind(node) == "UnresolvedRelation")


def _name(relation: Java) -> str | None:
    """The name of a table; one with several parts is of a catalog or a file."""
    named = list(items(relation.multipartIdentifier()))
    return str(named[0]).lower() if len(named) == 1 else None


def _named_in(select: Java) -> Iterator[Java]:
    """The tables of the FROM of a SELECT."""
    for child in children(select):
        if kind(child) == "UnresolvedRelation":
            yield child
        elif kind(child) not in _BOUNDARIES:
            yield from _named_in(child)
