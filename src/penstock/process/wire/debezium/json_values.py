"""Values of Debezium's JSON, where the schema beside them says how they are to be taken.

They are brought to what is understood without a schema: times in microseconds, decimals spelled out.
"""

from datetime import datetime

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import ArrayType, StringType, StructType

from penstock.events.kinds import Fixed, Kind, Maybe, Scalar

_PARAMETERS = StructType().add("scale", StringType())
COLUMNS = ArrayType(
    StructType().add("field", StringType()).add("name", StringType()).add("parameters", _PARAMETERS)
)
_MILLIS = ("io.debezium.time.Timestamp", "org.apache.kafka.connect.data.Timestamp")
_NANOS = "io.debezium.time.NanoTimestamp"
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_COUNT = "^-?[0-9]{1,19}$"
_UNSCALED = r"^([A-Za-z0-9+/]{4}){0,5}([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"
_WHOLE = '{"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 0}'


def depends_on_schema(kind: Kind) -> bool:
    """Whether a schema may say something of such values that they do not say themselves."""
    inner = kind.inner if isinstance(kind, Maybe) else kind
    return inner == Scalar(datetime) or isinstance(inner, Fixed)


def said_of(name: str, columns: Column) -> Column:
    """Return what a schema says of a column; null where there is no schema."""
    return F.get(F.filter(columns, lambda each: each["field"] == name), F.lit(0))


def understood(kind: Kind, value: Column, said: Column) -> Column:
    """Return a column's value as if there were no schema."""
    inner = kind.inner if isinstance(kind, Maybe) else kind
    if not isinstance(inner, Fixed):
        return _in_micros(value, said["name"])
    is_precise = said["name"].eqNullSafe(F.lit(_DECIMAL))
    return F.when(is_precise, _spelled(value, said["parameters"]["scale"])).otherwise(value)


def _in_micros(value: Column, name: Column) -> Column:
    is_count = value.rlike(_COUNT)
    micros = F.call_function("div", value.try_cast("long"), F.lit(1000)).cast("string")
    in_millis, in_nanos = name.isin(*_MILLIS) & is_count, (name == _NANOS) & is_count
    return F.when(in_millis, F.concat(value, F.lit("000"))).when(in_nanos, micros).otherwise(value)


def _spelled(value: Column, scale: Column) -> Column:
    """A decimal's digits of its bytes, which Avro's reader knows; what is none stays what it is not."""
    bytes = F.unbase64(value)
    length = F.unhex(F.lpad(F.hex(F.length(bytes) * 2), 2, "0"))
    whole = from_avro(F.concat(length, bytes), _WHOLE, {"mode": "PERMISSIVE"}).cast("string")
    digits = F.concat(whole, F.lit("E-"), F.when(scale.rlike("^[0-9]{1,2}$"), scale))
    spelled = F.when(value.rlike(_UNSCALED), digits)
    return F.when(value.isNotNull(), F.coalesce(spelled, F.lit("no decimal")))
