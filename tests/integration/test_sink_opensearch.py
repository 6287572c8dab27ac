"""The sink of an index of OpenSearch, against a real server: nothing lost, and each row once by its key."""

import threading
import time

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from tests.integration.test_sink_search import everything
from tests.opensearch.node import Node, has_compiler

from penstock.errors import DataError, FencedError, SettingsError, SinkError, TargetError
from penstock.log.ledger import Entry
from penstock.settings import Settings
from penstock.targets import OpenSearchIndex, SinkOptions
from penstock.targets.opensearch import bulk, client
from penstock.targets.opensearch.bulk import Item
from penstock.targets.opensearch.client import Client, Server
from penstock.targets.opensearch.contents import read_all
from penstock.targets.opensearch.indices import live
from penstock.targets.target import Inspection
from penstock.testing.lane_contract import FIRST, SECOND, LaneContract
from penstock.testing.sink_contract import AtLeastOnceContract, Crash, batch, numbered
from penstock.testing.upsert_contract import SCHEMA, UpsertContract

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not has_compiler(), reason="the server's program needs a JDK"),
]


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    with Node(tmp_path_factory.mktemp("opensearch")) as started:
        yield started


@pytest.fixture
def settings(node, tmp_path):
    return Settings(data=tmp_path, connections={"opensearch": {"url": node.url}})


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Tries follow each other faster than in life."""
    for module in (client, bulk):
        monkeypatch.setattr(module, "WAITS", (0.01, 0.05, 0.1))


def asked(settings):
    return Client(Server.of(settings, "opensearch"))


def found(settings, name):
    """All rows that the server has."""
    server = asked(settings)
    return [row for each in read_all(server, live(server, name)) for row in each.to_pylist()]


class TestOpenSearchSink(AtLeastOnceContract):
    opening = ("sink.opensearch.claimed",)
    writing = ("sink.opensearch.written",)

    def make_sink(self, spark, settings, unique, guarantee="exactly-once"):
        self.settings, self.name = settings, f"t{unique}"
        schema = self.rows(spark, []).schema
        return OpenSearchIndex(self.name).sink(schema, SinkOptions(settings, unique, guarantee=guarantee))

    def rows(self, spark, numbers):
        return numbered(spark, numbers)

    def contents(self, sink):
        return [row["id"] for row in found(self.settings, self.name)]

    def holds(self, sink, numbers):
        """By their keys, rows are there once, which is more than the contract asks."""
        return sorted(self.contents(sink)) == sorted(numbers)


class TestOpenSearchUpserts(UpsertContract):
    def make_sink(self, spark, settings, unique):
        self.settings, self.name = settings, f"t{unique}"
        index = OpenSearchIndex(self.name, key="key")
        return index.sink(StructType.fromDDL(SCHEMA), SinkOptions(settings, unique))

    def table(self, sink):
        return {row["key"]: row["value"] for row in found(self.settings, self.name)}


def lanes_of(settings, name, sink="flow", ddl="id int, n long", **options):
    made = OpenSearchIndex(name, **options).sink(
        StructType.fromDDL(ddl), SinkOptions(settings, sink, lanes=1)
    )
    made._lanes.prepare(1)
    return made._lanes


def rows_of(*rows, deleted=None):
    ids, numbers = zip(*rows, strict=True)
    columns = {"id": pa.array(ids, pa.int32()), "n": pa.array(numbers, pa.int64())}
    if deleted is not None:
        columns["_deleted"] = pa.array([deleted] * len(ids))
    return pa.RecordBatch.from_pydict(columns)


class TestOpenSearchLanes(LaneContract):
    """Small batches are one request, and so even this holds; a larger one that breaks off leaves rows."""

    @pytest.fixture(autouse=True)
    def session(self, spark):
        """To parse schemas."""

    def make_lanes(self, settings, unique):
        self.settings, self.name = settings, f"t{unique}"
        return lanes_of(settings, self.name, unique)

    def batch(self, numbers):
        return rows_of(*((number, 0) for number in numbers))

    def contents(self):
        return [row["id"] for row in found(self.settings, self.name)]


@pytest.fixture
def name(unique):
    return f"t{unique}"


def put(lane, *rows, entry=None, deleted=None):
    lane.write([rows_of(*rows, deleted=deleted)], entry or Entry(1, FIRST))


def test_rows_that_broke_off_are_written_again_with_their_versions(spark, settings, name, monkeypatch):
    monkeypatch.setattr(bulk, "_MOST_ROWS", 3)
    lanes = lanes_of(settings, name)

    def broken():
        yield rows_of((1, 1), (2, 1), (3, 1), (1, 2))
        raise Crash

    with pytest.raises(Crash):
        lanes.open(0).write(broken(), Entry(1, FIRST))
    assert len(found(settings, name)) == 3
    assert lanes.read()[0].batch is None
    put(lanes.open(0), (1, 1), (2, 1), (3, 1), (1, 2))
    assert sorted((row["id"], row["n"]) for row in found(settings, name)) == [(1, 2), (2, 1), (3, 1)]


def test_a_late_write_never_goes_back_nor_brings_a_row_back(spark, settings, name):
    lanes = lanes_of(settings, name)
    late = lanes.open(0)
    late_items = list(late._items([rows_of((1, -1), (2, -1), (3, -1))], 1, 0))
    put(lanes.open(0), (1, 1), (2, 1), entry=Entry(2, FIRST))
    put(lanes.open(0), (2, 1), entry=Entry(2, SECOND), deleted=True)
    bulk.send(late._client, late._generation, late_items)  # past all checks, as from a process that slept
    assert sorted((row["id"], row["n"]) for row in found(settings, name)) == [(1, 1), (3, -1)]
    with pytest.raises(FencedError, match="lane 0 of sink 'flow' has another writer"):
        put(late, (1, -1))
    put(lanes.open(0), (3, 3), entry=Entry(2, batch(2, 20, 30)))  # what the late one wrote first is replaced
    assert sorted((row["id"], row["n"]) for row in found(settings, name)) == [(1, 1), (3, 3)]


def test_a_row_that_the_mapping_refuses_is_named(spark, settings, name):
    server, lanes = asked(settings), lanes_of(settings, name)
    generation = live(server, name)
    with pytest.raises(
        DataError, match=r"OpenSearch refused the row \[7\]: .*n.*\(For input string: \"x\"\)"
    ):
        bulk.send(
            server, generation, [Item("[6]", b'{"id":6,"n":6}', 1), Item("[7]", b'{"id":7,"n":"x"}', 1)]
        )
    assert [row["id"] for row in found(settings, name)] == [6]
    assert lanes.read() == ()


def test_items_that_the_server_is_too_busy_for_are_sent_again_within_a_bound(
    spark, settings, name, monkeypatch
):
    server = asked(settings)
    lanes_of(settings, name)
    generation, real, answers = live(server, name), server.send, []

    def busy(method, path, content, kind):
        """The server, with every second item refused as it does when its queue is full."""
        answer = real(method, path, content, kind)
        answered = answer.json()
        for item in answered["items"][1::2]:
            item["index"] = {"status": 429, "error": {"type": "rejected_execution_exception"}}
        answers.append(len(answered["items"]))
        answered["errors"] = len(answered["items"]) > 1
        return client.Answer(200, msgspec.json.encode(answered))

    monkeypatch.setattr(server, "send", busy)
    bulk.send(server, generation, [Item(f"[{n}]", b'{"id":%d,"n":1}' % n, 1) for n in range(8)])
    assert answers == [8, 4, 2, 1]
    with pytest.raises(SinkError, match=r"too busy for 2 rows, 4 times; one is \["):
        bulk.send(server, generation, [Item(f"[{n}]", b'{"id":%d,"n":1}' % n, 1) for n in range(40)])
    monkeypatch.setattr(server, "send", real)
    assert len(found(settings, name)) == 40


def test_an_index_is_verified_with_columns_of_every_type(spark, settings, name):
    index, rows = OpenSearchIndex(name, text=("tags",)), everything(spark, 3000)
    inspection = Inspection("flow", settings, known=lambda _: None, possible=lambda: None)
    assert index.contents(spark, rows.schema, inspection).count() == 0
    sink = index.sink(rows.schema, SinkOptions(settings, "flow"))
    sink.open()
    sink.write(rows, batch(0, 0, 10))
    compared = index.compare(rows, inspection)
    assert (compared.expected, compared.found, compared.missing, compared.unexpected) == (3000, 3000, 0, 0)
    asked(settings).need("POST", f"{name}/_refresh")
    query = {"query": {"query_string": {"query": "tags:1234 AND b:true AND at:[2020-01-01 TO *]"}}}
    hits = asked(settings).need("POST", f"{name}/_search", query)["hits"]["hits"]
    assert [each["_source"]["n"] for each in hits] == [1234]


def test_a_rebuilt_index_takes_the_place_in_one_step(spark, settings, name):
    index, lanes = OpenSearchIndex(name), lanes_of(settings, name)
    put(lanes.open(0), (1, 1), (2, 1), entry=Entry(5, SECOND))
    zombie = lanes.open(0)
    with pytest.raises(TargetError, match=f"nothing was rebuilt as '{name}-again'"):
        index.swap(index.beside("again"), settings)
    put(lanes_of(settings, f"{name}-again").open(0), (1, 9), entry=Entry(1, FIRST))
    for _ in range(2):
        index.swap(index.beside("again"), settings)
        assert [(row["id"], row["n"]) for row in found(settings, name)] == [(1, 9)]
    with pytest.raises(FencedError):
        put(zombie, (1, -1))
    with pytest.raises(FencedError, match="the index of row"):
        bulk.send(zombie._client, zombie._generation, [Item("[1]", b'{"id":1,"n":-1}', 1 << 60)])
    assert lanes.read() == (Entry(6, FIRST),)
    indices = asked(settings).need("GET", "_cat/indices?format=json")
    assert sorted(each["index"] for each in indices if name in each["index"]) == [
        f"{name}-again-000001",
        f"{name}-again-000001-ledger",
    ]
    put(lanes_of(settings, f"{name}-third").open(0), (3, 3), entry=Entry(1, FIRST))
    index.swap(index.beside("third"), settings)
    assert [(row["id"], row["n"]) for row in found(settings, name)] == [(3, 3)]


def test_who_wrote_before_a_generation_was_swapped_in_is_shut_out(spark, settings, name):
    index = OpenSearchIndex(name)
    put(lanes_of(settings, name, sink="shop.flow").open(0), (1, 1), entry=Entry(5, SECOND))
    put(lanes_of(settings, f"{name}-g7", sink="shop.flow.g7").open(0), (1, 9), entry=Entry(1, FIRST))
    index.swap(index.beside("g7"), settings)
    late = lanes_of(settings, name, sink="shop.flow").open(0)
    with pytest.raises(FencedError, match="a writer of epoch 6, this one has 5"):
        late.entry.refuse_older(5, "shop.flow")


def test_rows_of_another_flow_are_not_thrown_away(spark, settings, name):
    index = OpenSearchIndex(name)
    put(lanes_of(settings, name).open(0), (1, 1))
    put(lanes_of(settings, name, sink="other").open(0), (2, 2))
    put(lanes_of(settings, f"{name}-again").open(0), (1, 9))
    with pytest.raises(TargetError, match="also holds what lane 'other 0' has written"):
        index.swap(index.beside("again"), settings)


def test_what_does_not_fit_is_refused(spark, settings, name):
    lanes_of(settings, name)
    with pytest.raises(TargetError, match="column 'n' was bigint, is gone; rebuild"):
        lanes_of(settings, name, ddl="id int")
    with pytest.raises(TargetError, match=r"can't have a column 'a\.b'"):
        lanes_of(settings, name, ddl="id int, `a.b` int")
    asked(settings).need("PUT", f"{name}-own")
    with pytest.raises(TargetError, match="is an index of its own"):
        lanes_of(settings, f"{name}-own")
    with pytest.raises(TargetError, match="'Upper' is not a name of an index"):
        OpenSearchIndex("Upper")
    with pytest.raises(SettingsError, match="there is no connection 'nowhere'"):
        lanes_of(settings, name, connection="nowhere")


@pytest.mark.parametrize("url", ["", "ftp://x", "http://u:p@x:1"])
def test_a_connection_without_a_url_is_refused(url):
    with pytest.raises(SettingsError, match="has no url of a server"):
        Server.of(Settings(connections={"opensearch": {"url": url}}), "opensearch")


def test_a_server_that_is_not_there_is_an_error_without_the_password():
    connection = {"url": "http://127.0.0.1:1", "user": "u", "password": "hunter2"}
    server = Server.of(Settings(connections={"opensearch": connection}), "opensearch")
    with pytest.raises(SinkError, match="did not answer GET /x: ConnectionRefusedError") as caught:
        Client(server).ask("GET", "x")
    assert "hunter2" not in repr(caught.value) + repr(server)


@pytest.mark.timeout(300)
def test_a_server_that_is_killed_again_and_again_has_lost_nothing(spark, node, settings, name, monkeypatch):
    monkeypatch.setattr(client, "WAITS", (0.5, 1, 2, 4, 8, 16))
    monkeypatch.setattr(bulk, "_MOST_ROWS", 200)
    lanes, over, expected = lanes_of(settings, name), threading.Event(), {}

    def kill():
        for _ in range(2):
            time.sleep(2)
            node.kill()
            node.start()
        over.set()

    killer = threading.Thread(target=kill)
    killer.start()
    number = 0
    while not over.is_set():
        rows = [(number * 100 + key, number) for key in range(500)]
        lane = lanes.open(0)
        put(lane, *rows, entry=Entry(1, batch(number, number, number + 1)))
        lane.close()
        expected.update(rows)
        number += 1
    killer.join()
    assert number > 1
    assert {row["id"]: row["n"] for row in found(settings, name)} == expected
