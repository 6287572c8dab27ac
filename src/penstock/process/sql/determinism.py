"""Whether a query gives the same rows whenever it is run: a batch that is repeated has to."""

from collections.abc import Iterator

from penstock.process.spark.java import Java
from penstock.process.sql.text import QueryText
from penstock.process.sql.tree import items, kind, nodes

_NOW = frozenset(
    {"CurrentTimestamp", "Now", "CurrentDate", "CurrentTime", "LocalTimestamp", "CurrentUser", "SessionUser"}
    | {"CurrentDatabase", "CurrentCatalog", "CurrentTimeZone", "VariableReference"}
)
_TIMES = ("date", "timestamp", "timestamp_ntz")
_WORDS_FOR_NOW = ("now", "today", "tomorrow", "yesterday")  # which Spark takes for times
_COLLECTED = ("CollectList", "CollectSet")
_ORDERLESS = (
    "SortArray",
    "ArraySort",
    "Size",
    "ArraySize",
)  # of a collected list, these do not see the order
_FROM_EVENTS = "use what is in the events: their own time, `_source.written`, or a hash of their columns"
_BY_TIME = "say which one: min_by(…, at) or max_by(…, at)"
_SORTED = "sort it: sort_array(collect_list(…)), or count it: size(collect_set(…))"
_IN_ORDER_OF_ROWS = {
    "First": _BY_TIME,
    "Last": _BY_TIME,
    "AnyValue": _BY_TIME,
    "CollectList": _SORTED,
    "CollectSet": _SORTED,
    "ListAgg": "say the order: listagg(…) WITHIN GROUP (ORDER BY …)",
}


def refuse_chance(plan: Java, text: QueryText) -> None:
    """Refuse what is another value each time: the clock, randomness, what depends on the order of rows."""
    for node in nodes(plan):
        for expression in items(node.expressions()):
            for found in _by_chance(expression, text):
                raise text.refusal(
                    f"{_called(found)} may be another value each time, and a batch that is repeated has to "
                    "give the same rows",
                    found,
                    hint=_IN_ORDER_OF_ROWS.get(kind(found), _FROM_EVENTS),
                )


def _by_chance(expression: Java, text: QueryText) -> Iterator[Java]:
    """Yield what is by chance in an expression, the innermost first."""
    if _is_orderless(expression):
        return
    below = list(items(expression.children()))
    for child in below:
        yield from _by_chance(child, text)
    lowest = all(child.deterministic() for child in below)
    if (lowest and not expression.deterministic()) or _is_now(expression, text) or _is_in_order(expression):
        yield expression


def _is_now(expression: Java, text: QueryText) -> bool:
    """Whether it is the clock, by a function or by a word, as in TIMESTAMP 'now'."""
    if kind(expression) in _NOW:
        return True
    if kind(expression) not in ("Cast", "Literal") or expression.dataType().typeName() not in _TIMES:
        return False
    literal = expression if kind(expression) == "Literal" else expression.child()
    written = text.fragment(literal).lower() if kind(literal) == "Literal" else ""
    return any(f"'{word}'" in written.replace('"', "'").replace(" ", "") for word in _WORDS_FOR_NOW)


def _is_in_order(expression: Java) -> bool:
    """Whether it depends on the order in which rows come, which no shuffle keeps."""
    if kind(expression) == "ListAgg":
        return bool(expression.orderExpressions().isEmpty())
    return kind(expression) in _IN_ORDER_OF_ROWS


def _is_orderless(expression: Java) -> bool:
    """Whether it is of a list that was collected, whose order it does not show."""
    if kind(expression) not in _ORDERLESS:
        return False
    of = expression.children().apply(0)
    return kind(of) == "AggregateExpression" and kind(of.aggregateFunction()) in _COLLECTED


def _called(expression: Java) -> str:
    if kind(expression) in ("Cast", "Literal"):
        return "a word for the present"
    if kind(expression) == "VariableReference":
        return "a variable of the session"
    return f"{expression.prettyName()}()"
