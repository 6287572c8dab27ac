"""Avro schemas of Debezium's in Avro's own words."""

from penstock.process.wire.debezium.avro_schema import fields_in, with_logical_types


def named(name, type="long"):
    return {"type": type, "connect.version": 1, "connect.name": name}


def test_times_and_dates_are_what_connect_calls_them():
    found = {
        name: with_logical_types(named(name)).get("logicalType")
        for name in (
            "io.debezium.time.Timestamp",
            "io.debezium.time.MicroTimestamp",
            "io.debezium.time.NanoTimestamp",
            "io.debezium.time.Date",
            "io.debezium.time.MicroTime",
            "org.apache.kafka.connect.data.Timestamp",
            "org.apache.kafka.connect.data.Date",
        )
    }
    assert found == {
        "io.debezium.time.Timestamp": "timestamp-millis",
        "io.debezium.time.MicroTimestamp": "timestamp-micros",
        "io.debezium.time.NanoTimestamp": None,
        "io.debezium.time.Date": "date",
        "io.debezium.time.MicroTime": None,
        "org.apache.kafka.connect.data.Timestamp": "timestamp-millis",
        "org.apache.kafka.connect.data.Date": "date",
    }


def test_they_are_found_in_unions_lists_and_rows():
    due = named("io.debezium.time.MicroTimestamp")
    row = {
        "type": "record",
        "name": "Value",
        "fields": [{"name": "due", "type": [due, "null"], "default": 0}],
    }
    days = {"type": "array", "items": named("io.debezium.time.Date", "int")}
    envelope = {
        "type": "record",
        "name": "Envelope",
        "fields": [
            {"name": "before", "type": ["null", row], "default": None},
            {"name": "days", "type": days},
        ],
    }
    found = with_logical_types(envelope)
    inner = found["fields"][0]["type"][1]["fields"][0]
    assert inner == {"name": "due", "type": [due | {"logicalType": "timestamp-micros"}, "null"], "default": 0}
    assert found["fields"][1]["type"]["items"]["logicalType"] == "date"
    assert "logicalType" not in due


def test_a_decimal_of_unknown_size_gets_the_size_that_spark_has():
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
    assert with_logical_types(decimal) == decimal | {"precision": 38}
    assert with_logical_types(decimal | {"precision": 12})["precision"] == 12


def test_fields_of_records_only():
    assert fields_in({"type": "record", "name": "Key", "fields": [{"name": "id", "type": "long"}]}) == {"id"}
    assert fields_in("string") == fields_in(["null", "long"]) == fields_in(None) == frozenset()
