"""The text of a JSON object, with a mark as its last field: only a text that is one object has it there."""

from pyspark.sql import Column
from pyspark.sql import functions as F

_BLANKS = " \t\r\n"
# Half a pair of surrogates, of which Jackson makes a question mark, and which Python refuses.
_HALF_PAIR = r"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]"


def json_text(body: Column, mark: Column, name: str) -> Column:
    """Return the bytes of an object as a text, of which the mark is the last field; null if it is none.

    The object that a text begins with has to be the one that it ends with. One that ends before, and goes on
    with another, has no mark; one that ends inside of something else is no JSON.
    """
    text = body.cast("string")
    good = F.is_valid_utf8(text) & ~_has_half_pair(text)
    return F.when(good, _marked(_opened(body), mark, name))


def _opened(body: Column) -> Column:
    """A text's bytes without the brace at its end, behind which there may be blanks; null without one."""
    trimmed = F.rtrim(body.cast("string"), F.lit(_BLANKS)).cast("binary")
    return F.when(_is_closed(body), _shortened(body)).when(_is_closed(trimmed), _shortened(trimmed))


def _is_closed(body: Column) -> Column:
    return body.cast("string").endswith("}")


def _shortened(body: Column) -> Column:
    """Bytes without the last one; in a text, Spark would count letters."""
    return F.substr(body, F.lit(1), F.octet_length(body) - 1)


def _marked(opened: Column, mark: Column, name: str) -> Column:
    last = F.substring(opened, -1, 1).cast("string")
    is_empty = last.isin("{", *_BLANKS) & (F.trim(opened.cast("string"), F.lit(_BLANKS)) == "{")
    comma = F.when(is_empty, F.lit(b"")).otherwise(F.lit(b","))
    field = F.concat(F.lit(f'"{name}":"'.encode()), mark.cast("binary"), F.lit(b'"}'))
    return F.concat(opened, comma, field).cast("string")


def _has_half_pair(text: Column) -> Column:
    """An escaped backslash is no beginning of an escape; few texts have anything to look at."""
    looks = text.contains("\\u") & (text.contains("\\ud") | text.contains("\\uD"))
    return looks & F.replace(text, F.lit("\\\\"), F.lit("--")).rlike(_HALF_PAIR)
