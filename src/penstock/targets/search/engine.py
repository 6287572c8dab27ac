"""Indexes of tantivy as a description has them: fields, tokenizers, and how one is opened."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import tantivy
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from penstock.errors import SinkError
from penstock.targets.search.description import BUCKET, KEY, LEDGER, ROW, Description

_LONGEST_WORD = 255  # bytes; what is longer is no word that somebody looks for
_TOKENIZED = "penstock_text"


def make_index(folder: Path, description: Description) -> None:
    """Make an empty index."""
    tantivy.Index(_schema(description), path=str(folder), reuse=False)


def open_index(folder: Path, description: Description) -> tantivy.Index:
    """Open an index; it is read as it is when `reload` is called."""
    index = tantivy.Index.open(str(folder))
    index.config_reader(reload_policy="manual")
    index.register_tokenizer(_TOKENIZED, _analyzer(description.tokenizer))
    return index


@contextmanager
def asking(what: str, hint: str = "it is tried again; see that there is room on the disk") -> Iterator[None]:
    """Turn tantivy's errors into ours."""
    try:
        yield
    except (ValueError, OSError) as error:
        said = " ".join(str(error).split())
        raise SinkError(f"the index did not {what}: {said}", hint=hint) from error


def filter_kind(type: DataType) -> str | None:
    """Return the kind of field by which a column can be filtered; some columns are only stored."""
    match type:
        case StringType():
            return "text"
        case BooleanType():
            return "boolean"
        case IntegralType():
            return "integer"
        case FloatType() | DoubleType() | DecimalType():
            return "float"
        case DateType() | TimestampType() | TimestampNTZType():
            return "date"
        case ArrayType(elementType=StringType() | BooleanType() | IntegralType() | DoubleType()):
            return filter_kind(type.elementType)
    return None


def _schema(description: Description) -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field(KEY, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(LEDGER, stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field(BUCKET, indexed=True)
    builder.add_bytes_field(ROW, stored=True)
    for field in description.schema:
        kind = filter_kind(field.dataType)
        if field.name in description.text:
            builder.add_text_field(field.name, tokenizer_name=_TOKENIZED)
        elif kind == "text":
            builder.add_text_field(field.name, tokenizer_name="raw", index_option="basic")
        elif kind == "boolean":
            builder.add_boolean_field(field.name, indexed=True)
        elif kind is not None:
            getattr(builder, f"add_{kind}_field")(field.name, indexed=True, fast=True)
    return builder.build()


def _analyzer(tokenizer: str) -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    builder = builder.filter(tantivy.Filter.remove_long(_LONGEST_WORD)).filter(tantivy.Filter.lowercase())
    if tokenizer != "words":
        builder = builder.filter(tantivy.Filter.stemmer(tokenizer))
    return builder.build()
