"""The registry: Confluent's own client against it, crashes, and instances that agree."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from confluent_kafka.schema_registry import (
    Metadata,
    MetadataProperties,
    Rule,
    RuleKind,
    RuleMode,
    RuleParams,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from penstock.errors import IncompatibleSchemaError, RulesError, UnknownSchemaError
from penstock.events import Event
from penstock.log import Broker, Consumer, Producer, Topic, apply
from penstock.registry import Registry
from penstock.registry.topic import NAME
from penstock.schemas import Mode, SchemaKind


def order(*fields, name="Order"):
    return json.dumps({"type": "record", "name": name, "fields": [{"name": "id", "type": "string"}, *fields]})


PRICE = {"name": "price", "type": "double", "default": 0}
REQUIRED = {"name": "price", "type": "double"}


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


URLS = {}
COMMAND = [sys.executable, "-c", "from penstock.cli.main import run; run()", "registry"]


def environment(settings, **variables):
    return os.environ | {"PENSTOCK_KAFKA_BOOTSTRAP_SERVERS": settings.kafka["bootstrap.servers"]} | variables


@contextmanager
def served(settings, tmp_path, **variables):
    """A registry in a process of its own."""
    port = free_port()
    process = subprocess.Popen(
        [*COMMAND, "--port", str(port)], env=environment(settings, **variables), cwd=tmp_path
    )
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        client = SchemaRegistryClient({"url": f"http://127.0.0.1:{port}", "max.retries": 0})
        URLS[client] = f"http://127.0.0.1:{port}"
        yield process, client
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def client(settings, tmp_path_factory):
    with served(settings, tmp_path_factory.mktemp("registry")) as (_, found):
        yield found


@pytest.fixture
def registry(settings):
    with Registry(settings, patience="500 ms") as found:
        yield found


def test_confluents_client_registers_finds_and_deletes(client, unique):
    first = client.register_schema(unique, Schema(order(), "AVRO"))
    assert client.register_schema(unique, Schema(order(), "AVRO")) == first
    second = client.register_schema(unique, Schema(order(PRICE), "AVRO"))
    assert second > first
    assert client.register_schema(unique + "-other", Schema(order(), "AVRO")) == first, "one schema, one id"
    assert json.loads(client.get_schema(second).schema_str) == json.loads(order(PRICE))
    assert {unique, unique + "-other"} <= set(client.get_subjects())
    assert client.get_versions(unique) == [1, 2]
    assert client.get_latest_version(unique).schema_id == second
    assert client.get_version(unique, 1).schema_id == first
    assert client.lookup_schema(unique, Schema(order(), "AVRO")).version == 1
    assert client.delete_version(unique, 1) == 1
    assert client.get_versions(unique) == [2]
    assert client.delete_subject(unique, permanent=False) == [2]
    assert client.delete_subject(unique, permanent=True) == [1, 2]
    assert unique not in client.get_subjects()


def test_modes_and_compatibility(client, unique):
    assert client.get_compatibility() == "BACKWARD"
    client.register_schema(unique, Schema(order(), "AVRO"))
    assert client.test_compatibility(unique, Schema(order(PRICE), "AVRO"))
    assert not client.test_compatibility(unique, Schema(order(REQUIRED), "AVRO"))
    with pytest.raises(SchemaRegistryError) as caught:
        client.register_schema(unique, Schema(order(REQUIRED), "AVRO"))
    assert caught.value.http_status_code == 409
    assert "Order.price" in caught.value.error_message
    assert "reader-field-missing-default" in caught.value.error_message
    client.set_compatibility(unique, "NONE")
    assert client.get_compatibility(unique) == "NONE"
    client.register_schema(unique, Schema(order(REQUIRED), "AVRO"))
    client.set_compatibility(unique, "FULL_TRANSITIVE")
    with pytest.raises(SchemaRegistryError):
        client.register_schema(unique, Schema(order(REQUIRED, {"name": "more", "type": "int"}), "AVRO"))


@pytest.mark.parametrize(
    ("call", "status", "code"),
    [
        (lambda client: client.get_schema(10**6), 404, 40403),
        (lambda client: client.get_versions("nobody"), 404, 40401),
        (lambda client: client.get_version("nobody", 1), 404, 40401),
        (lambda client: client.register_schema("bad", Schema("{", "AVRO")), 422, 42201),
        (lambda client: client.register_schema("bad", Schema('{"type": "no"}', "AVRO")), 422, 42201),
        (lambda client: client.set_compatibility("bad", "SIDEWAYS"), 422, 42203),
        (lambda client: client.get_compatibility("nobody"), 404, 40408),
    ],
)
def test_errors_have_confluents_codes(client, call, status, code):
    with pytest.raises(SchemaRegistryError) as caught:
        call(client)
    assert (caught.value.http_status_code, caught.value.error_code) == (status, code)


def test_references_are_resolved(client, unique):
    line = json.dumps({"type": "record", "name": "Line", "fields": [{"name": "sku", "type": "string"}]})
    client.register_schema(f"{unique}-line", Schema(line, "AVRO"))
    reference = SchemaReference("Line", f"{unique}-line", 1)
    lines = {"name": "lines", "type": {"type": "array", "items": "Line"}}
    id = client.register_schema(unique, Schema(order(lines), "AVRO", [reference]))
    assert client.get_schema(id).references[0].subject == f"{unique}-line"
    with pytest.raises(SchemaRegistryError):
        client.delete_subject(f"{unique}-line")


def round_trip(unique, serializer, deserializer, value):
    context = SerializationContext(unique, MessageField.VALUE)
    data = serializer(value, context)
    assert data[0] == 0, "Confluent's wire format"
    return deserializer(data, context)


def test_confluents_avro_serializer(client, unique):
    serializer = AvroSerializer(client, order(PRICE))
    assert round_trip(unique, serializer, AvroDeserializer(client), {"id": "o1", "price": 2.5}) == {
        "id": "o1",
        "price": 2.5,
    }


def test_confluents_json_serializer(client, unique):
    schema = json.dumps(
        {"title": "Order", "type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}
    )
    serializer, deserializer = (
        JSONSerializer(schema, client),
        JSONDeserializer(schema, schema_registry_client=client),
    )
    assert round_trip(unique, serializer, deserializer, {"id": "o1"}) == {"id": "o1"}


def test_confluents_protobuf_serializer(client, unique):
    moment = timestamp_pb2.Timestamp(seconds=17)
    serializer = ProtobufSerializer(timestamp_pb2.Timestamp, client, {"use.deprecated.format": False})
    deserializer = ProtobufDeserializer(timestamp_pb2.Timestamp, {"use.deprecated.format": False})
    assert round_trip(unique, serializer, deserializer, moment) == moment
    client.register_schema(
        f"{unique}-text", Schema('syntax = "proto3"; message Order { string id = 1; }', "PROTOBUF")
    )
    changed = Schema('syntax = "proto3"; message Order { int64 id = 1; }', "PROTOBUF")
    assert not client.test_compatibility(f"{unique}-text", changed)


def test_the_registry_survives_kill_9(settings, tmp_path, unique):
    with served(settings, tmp_path) as (process, client):
        id = client.register_schema(unique, Schema(order(), "AVRO"))
        client.set_compatibility(unique, "FULL")
        process.send_signal(signal.SIGKILL)
        process.wait()
    with served(settings, tmp_path) as (_, client):
        assert client.lookup_schema(unique, Schema(order(), "AVRO")).schema_id == id
        assert client.get_compatibility(unique) == "FULL"


def test_instances_that_register_at_once_agree(settings, unique):
    """Four instances, each with eight writers, race for the same subjects: one order decides."""
    registries = [Registry(settings) for _ in range(4)]
    seen = []

    def write(registry, number):
        for turn in range(4):
            subject = f"{unique}-{turn % 2}"
            schema = order({"name": f"f{(number + turn) % 6}", "type": "long", "default": 0})
            found = registry.register(subject, SchemaKind.AVRO, schema)
            seen.append((subject, schema, found.version, found.id))

    threads = [
        threading.Thread(target=write, args=(registry, number))
        for number, registry in enumerate(registries * 2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 32
    by_schema = {}
    for subject, schema, version, id in seen:
        assert by_schema.setdefault((subject, schema), (version, id)) == (version, id)
    views = [
        [
            [(each.version, each.id, each.text) for each in registry.versions(f"{unique}-{turn}")]
            for turn in (0, 1)
        ]
        for registry in registries
    ]
    assert all(view == views[0] for view in views)
    for versions in views[0]:
        assert [version for version, _, _ in versions] == list(range(1, len(versions) + 1))
        assert len({text for _, _, text in versions}) == len(versions)
    with Registry(settings) as late:
        assert [
            [(each.version, each.id, each.text) for each in late.versions(f"{unique}-{turn}")]
            for turn in (0, 1)
        ] == views[0]
    for registry in registries:
        registry.close()


def test_a_refusal_names_field_and_rule(registry, unique):
    registry.register(unique, SchemaKind.AVRO, order())
    with pytest.raises(IncompatibleSchemaError, match=r"Order\.price") as caught:
        registry.register(unique, SchemaKind.AVRO, order(REQUIRED))
    assert caught.value.problems[0].rule == "reader-field-missing-default"
    registry.set_mode(Mode.NONE, unique)
    assert registry.register(unique, SchemaKind.AVRO, order(REQUIRED)).version == 2


def test_the_topic_is_compacted(settings, registry):
    assert Broker(settings).topic(NAME).config["cleanup.policy"] == "compact"


@dataclass(frozen=True)
class Stop(Event):
    name: str
    at: datetime


NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("format", ["avro", "json-schema", "protobuf"])
def test_typed_events_name_their_schema(settings, registry, unique, format):
    topic = Topic(unique, Stop, key="name", format=format)
    apply([topic], Broker(settings))
    with Producer(settings, schemas=registry) as producer:
        producer.send(topic, Stop("a", NOW))
    with Consumer(topic, settings, schemas=registry) as consumer:
        (record,) = consumer.records(idle="500 ms")
    assert record.event.name == "a"
    assert [version.version for version in registry.versions(f"{unique}-value")] == [1]


def test_an_unknown_id_waits_and_then_is_a_dead_letter(settings, registry, unique):
    topic = Topic(unique, Stop, key="name", format="avro")
    apply([topic], Broker(settings))
    with Producer(settings, schemas=registry) as producer:
        producer.send(topic, Stop("a", NOW))
        for _ in range(3):
            producer.send_bytes(unique, b"a", b"\0" + (10**6).to_bytes(4, "big") + b"rest")
        producer.send(topic, Stop("b", NOW))
    with Consumer(topic, settings, schemas=registry, group=unique) as consumer:
        batches = list(consumer.batches(10, "500 ms", idle="1 second"))
    assert [event.name for batch in batches for event in batch.events] == ["a", "b"]
    assert sum(batch.dead for batch in batches) == 3
    dead = Topic(f"{unique}.dead-letters", Stop)
    with Consumer(dead, settings) as consumer:
        polls = [message for messages in consumer._polls(10, "100 ms", "500 ms") for message in messages]
    assert b"no schema has the id 1000000" in dict(polls[0].headers())["penstock.dead.error"]


def test_an_id_that_comes_late_is_waited_for(settings, unique):
    with Registry(settings, patience="10 seconds") as reader, Registry(settings) as writer:
        next_id = writer.register(unique, SchemaKind.AVRO, order(name=f"F{unique}")).id + 1
        late = threading.Timer(
            1.0, lambda: writer.register(f"{unique}-late", SchemaKind.AVRO, order(name=f"L{unique}"))
        )
        late.start()
        assert "L" + unique in reader.written(f"{unique}-late", next_id).text
        late.join()
    with Registry(settings, patience="100 ms") as impatient, pytest.raises(UnknownSchemaError):
        impatient.written(unique, 10**6)


def ask(client, method, path, body=None, **headers):
    """The status and the error code of a request that no client would send."""
    connection = http.client.HTTPConnection(urlsplit(URLS[client]).netloc, timeout=60)
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, headers)
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found.get("error_code") if isinstance(found, dict) else found


def test_subjects_with_a_slash(client, unique):
    """Confluent's serializer registers an imported file under its path."""
    subject = f"{unique}/money.proto 100%"
    id = client.register_schema(subject, Schema(order(), "AVRO"))
    assert client.get_latest_version(subject).schema_id == id
    assert client.lookup_schema(subject, Schema(order(), "AVRO")).subject == subject
    assert client.test_compatibility(subject, Schema(order(PRICE), "AVRO"))
    client.set_compatibility(subject, "FULL")
    assert client.get_compatibility(subject) == "FULL"
    assert subject in client.get_subjects()
    assert client.delete_subject(subject) == [1]
    assert ask(client, "GET", f"/subjects/{unique}%FF/versions") == (400, 400)


def test_confluents_protobuf_serializer_with_an_import_from_a_folder(client, unique):
    package, pool = f"p{unique}", DescriptorPool()
    money = FileDescriptorProto(name=f"{unique}/money.proto", package=package, syntax="proto3")
    money.message_type.add(name="Money").field.add(name="cents", number=1, type=3, label=1)
    bill = FileDescriptorProto(name="bill.proto", package=package, syntax="proto3", dependency=[money.name])
    bill.message_type.add(name="Bill").field.add(
        name="sum", number=1, type=11, label=1, type_name=f".{package}.Money"
    )
    for file in (money, bill):
        pool.Add(file)
    made = GetMessageClass(pool.FindMessageTypeByName(f"{package}.Bill"))
    one = made()
    one.sum.cents = 5
    serializer = ProtobufSerializer(made, client, {"use.deprecated.format": False})
    deserializer = ProtobufDeserializer(made, {"use.deprecated.format": False})
    assert round_trip(unique, serializer, deserializer, one) == one
    assert f"{unique}/money.proto" in client.get_subjects()


def rules(name):
    encrypt = Rule(
        name,
        None,
        RuleKind.TRANSFORM,
        RuleMode.WRITEREAD,
        "ENCRYPT",
        ["PII"],
        RuleParams({"k": "v"}),
        None,
        None,
        None,
        False,
    )
    return RuleSet(None, [encrypt])


def test_rules_and_metadata_are_kept(client, registry, unique):
    metadata = Metadata(None, MetadataProperties({"owner": "ada"}), None)
    first = client.register_schema(unique, Schema(order(), "AVRO"))
    ruled = Schema(order(), "AVRO", metadata=metadata, rule_set=rules("encrypt"))
    second = client.register_schema(unique, ruled)
    assert second != first, "what a reader has to do is another"
    for found in (client.get_latest_version(unique).schema, client.get_schema(second)):
        assert found.metadata.properties == metadata.properties
        assert found.rule_set.domain_rules[0].name == "encrypt"
        assert found.rule_set.domain_rules[0].params.params == {"k": "v"}
    assert client.get_schema(first).rule_set is None
    client.clear_caches()
    assert client.register_schema(unique, ruled) == second
    assert client.register_schema(unique, client.get_schema(second)) == second, "as it came back"
    assert client.lookup_schema(unique, ruled).version == 2
    assert client.lookup_schema(unique, Schema(order(), "AVRO")).version == 2
    client.register_schema(unique, Schema(order(PRICE), "AVRO"))
    assert client.get_latest_version(unique).schema.rule_set.domain_rules[0].name == "encrypt", "they go on"
    with pytest.raises(RulesError, match="encrypt"):
        registry.id_for(unique, SchemaKind.AVRO, order(PRICE))
    assert (
        ask(client, "POST", f"/subjects/{unique}/versions", {"schema": order(PRICE), "ruleSet": {}})[0] == 200
    )
    assert registry.version(unique).rules is None
    assert registry.id_for(unique, SchemaKind.AVRO, order(PRICE)) == registry.version(unique).id


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/subjects/{}/versions", {"schema": '"long"', "ruleSet": [1]}),
        ("POST", "/subjects/{}/versions", {"schema": '"long"', "metadata": "x"}),
        ("POST", "/subjects/{}/versions", {"schema": '"long"', "schemaTagsToAdd": [{"x": 1}]}),
        ("PUT", "/config/{}", {"compatibility": "FULL", "overrideRuleSet": {"domainRules": []}}),
    ],
)
def test_what_would_be_dropped_is_refused(client, unique, method, path, body):
    assert ask(client, method, path.format(unique), body) == (422, 42201)


def json_schema(schema):
    return {"schemaType": "JSON", "schema": json.dumps(schema)}


def avro(schema):
    return {"schema": json.dumps(schema)}


BACKTRACKING = {"pattern": "^(a+)+$", "patternProperties": {"^(a+)+$": {"type": "integer"}}}
SYMBOLS = [f"S{number}" for number in range(250_000)]
FIXED = {"type": "fixed", "name": "F", "size": 200_000_000, "logicalType": "decimal", "precision": 10**9}
ODD = {"name": "", "subject": "s", "version": 1}


def recursive(name, *branches):
    return {"type": "record", "name": name, "fields": [{"name": "f", "type": branches, "default": {}}]}


HOSTILE = {
    "pattern": (json_schema({"const": "a" * 60 + "!"}), json_schema(BACKTRACKING), 409),
    "blanks": (None, {"schemaType": "PROTOBUF", "schema": " " * 200_000 + "!"}, 422),
    "fixed": (None, avro(FIXED), 422),
    "defaults": (
        None,
        avro(recursive("A", "A", recursive("B", "A", "B", recursive("C", "A", "B", "C")))),
        422,
    ),
    "enum": (None, avro({"type": "enum", "name": "E", "symbols": SYMBOLS}), 422),
    "alternatives": (
        json_schema({"allOf": [{"anyOf": [{}]}] * 20}),
        json_schema({"not": {"minimum": 3}}),
        409,
    ),
    "deep": (None, b'{"schema": ' + b"[" * 10_000, 400),
    "deep schema": (None, {"schema": '{"type": "array", "items": ' * 10_000}, 422),
    "infinite version": (
        None,
        b'{"schema": "1", "references": [{"name": "a", "subject": "s", "version": 1e999}]}',
        400,
    ),
    "surrogate": (None, b'{"schema": "\\"\\ud800\\""}', 400),
    "nameless reference": (None, {"schema": '"long"', "references": [ODD]}, 422),
    "references of another form": (None, {"schema": '"long"', "references": {"a": 1}}, 422),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_requests_are_refused_while_others_are_served(client, unique, case):
    before, body, status = HOSTILE[case]
    path = f"/subjects/{unique}/versions"
    if before is not None:
        assert ask(client, "POST", path, before)[0] == 200
    answers = []
    thread = threading.Thread(target=lambda: answers.append(ask(client, "POST", path, body)))
    begun = time.monotonic()
    thread.start()
    healthy = client.register_schema(f"{unique}-healthy", Schema(order(name=f"H{unique}"), "AVRO"))
    assert ask(client, "GET", f"/schemas/ids/{healthy}")[0] == 200
    assert time.monotonic() - begun < 15, "a second, on a machine that is idle"
    thread.join()
    assert answers[0][0] == status
    assert time.monotonic() - begun < 30


def test_references_that_double_on_each_level(client, unique):
    """Each level refers to the one below under two names."""
    level = {"schemaType": "JSON", "schema": "true"}
    begun = time.monotonic()
    for number in range(16):
        assert ask(client, "POST", f"/subjects/{unique}-{number}/versions", level)[0] == 200
        below = [{"name": f"{side}{number}", "subject": f"{unique}-{number}", "version": 1} for side in "ab"]
        level = {**json_schema({"title": f"L{number}"}), "references": below}
    assert time.monotonic() - begun < 60


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/schemas/ids/" + "9" * 5_000, 404),
        ("/schemas/ids/x", 404),
        ("/schemas/ids/-1/versions", 404),
        ("/subjects/s/versions/" + "9" * 5_000, 422),
        ("/subjects/%ED%A0%80/versions", 400),
    ],
)
def test_odd_paths(client, path, status):
    assert ask(client, "GET", path)[0] == status


def test_a_token_is_wanted_from_whoever_is_not_here(settings, tmp_path, unique):
    refused = subprocess.run(
        [*COMMAND, "--host", "0.0.0.0"],
        env=environment(settings),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert refused.returncode == 78
    assert "PENSTOCK_REGISTRY_TOKEN" in refused.stdout + refused.stderr
    with served(settings, tmp_path, PENSTOCK_REGISTRY_TOKEN=unique) as (_, client):
        assert ask(client, "GET", "/subjects") == (401, 40101)
        assert ask(client, "GET", "/subjects", Authorization=f"Bearer {unique}")[0] == 200
        url = URLS[client]
        known = SchemaRegistryClient({"url": url, "basic.auth.user.info": f"me:{unique}"})
        assert known.register_schema(unique, Schema(order(), "AVRO"))
        stranger = SchemaRegistryClient({"url": url, "basic.auth.user.info": "me:no", "max.retries": 0})
        with pytest.raises(SchemaRegistryError) as caught:
            stranger.get_subjects()
        assert caught.value.http_status_code == 401
