"""An index below its sink: rows and entry together, keys as values, one writer, readers beside it."""

import json
import subprocess
import sys
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    _parse_datatype_json_value,
)

from penstock.cli import output
from penstock.cli.main import app
from penstock.errors import DataError, FencedError, SinkError, TargetError
from penstock.log.ledger import Entry
from penstock.settings import Settings
from penstock.targets.search import SearchIndex
from penstock.targets.search.description import Description
from penstock.targets.search.folder import IndexFolder, Pointer, describe
from penstock.targets.search.lane import SearchLanes
from penstock.targets.search.reader import IndexReader
from penstock.testing.lane_contract import FIRST, SECOND, LaneContract

WAIT = timedelta(seconds=30)
ARTICLES = "id string, title string, body string, tags array<string>, stars int, at timestamp"


@pytest.fixture
def settings(tmp_path):
    return Settings(data=tmp_path)


def schema_of(ddl):
    """A schema of its columns as texts; Spark's own parser needs a session."""
    return StructType([StructField(*_named(each, " ")) for each in _parts(ddl)])


def _named(text, sign):
    name, _, type = text.strip().partition(sign)
    return name, _type(type.strip())


def _type(text):
    kind, _, inner = text.removesuffix(">").partition("<")
    match kind:
        case "array":
            return ArrayType(_type(inner))
        case "map":
            return MapType(*map(_type, _parts(inner)))
        case "struct":
            return StructType([StructField(*_named(each, ":")) for each in _parts(inner)])
        case "void":
            return NullType()
        case "string collate UTF8_LCASE":
            return StringType("UTF8_LCASE")
    return _parse_datatype_json_value({"int": "integer"}.get(text, text))


def _parts(text):
    """What commas separate that are in no brackets."""
    depth, parts = 0, [""]
    for sign in text:
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [each.strip() for each in parts]


def described(ddl, key=("id",), text=(), tokenizer="words"):
    return Description.of("here", schema_of(ddl), key, text, tokenizer)


def rows_of(ddl, *rows):
    """Rows as Spark hands them over."""
    schema = to_arrow_schema(schema_of(ddl), timezone="UTC")
    names = schema.names
    return pa.RecordBatch.from_pylist([dict(zip(names, row, strict=True)) for row in rows], schema=schema)


class Index:
    """An index of a test, and one who writes it."""

    def __init__(self, path, ddl, sink="flow", wait=WAIT, **options):
        self.path, self.ddl = path, ddl
        self.lanes = SearchLanes(str(path), described(ddl, **options), sink, wait)
        self.lanes.prepare(1)

    def put(self, *rows, entry=None, ddl=None):
        lane = self.lanes.open(0)
        try:
            lane.write([rows_of(ddl or self.ddl, *rows)], entry or Entry(1, FIRST))
        finally:
            lane.close()

    def search(self, query, limit=1000):
        return SearchIndex(self.path).search(query, limit)

    def all(self):
        reader = IndexReader(IndexFolder(self.path))
        return [tuple(row.values()) for batch in reader.batches() for row in batch.to_pylist()]


@pytest.fixture
def index(tmp_path):
    return lambda ddl, name="index", **options: Index(tmp_path / name, ddl, **options)


class TestLanes(LaneContract):
    def make_lanes(self, settings, unique):
        self.path = settings.data / unique
        return SearchLanes(str(self.path), described("id int"), unique, WAIT)

    def batch(self, numbers):
        return pa.RecordBatch.from_pydict({"id": pa.array(numbers, pa.int32())})

    def contents(self):
        reader = IndexReader(IndexFolder(self.path))
        return [number for batch in reader.batches() for number in batch.column("id").to_pylist()]


def test_texts_are_found_by_words_and_other_columns_by_value(index):
    made = index(ARTICLES, text=("title", "body"))
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    made.put(
        ("a", "Quick Foxes", "they jump", ["news", "New York"], 5, noon),
        ("b", "Lazy dogs", "A fox passes", [], 3, noon + timedelta(days=1)),
        ("c", None, None, None, None, None),
    )

    def found(query):
        return sorted(row["id"] for row in made.search(query))

    assert found("FOX") == ["b"]
    assert found("foxes dogs") == ["a", "b"]
    assert found('"they jump"') == ["a"]
    assert found("foxes AND stars:[4 TO 9]") == ["a"]
    assert found('tags:"New York"') == ["a"]
    assert found("id:b") == ["b"]
    assert found("at:[2026-03-01T12:00:00Z TO 2026-03-01T13:00:00Z]") == ["a"]
    assert found("* NOT stars:5") == ["b", "c"]
    assert found("*") == ["a", "b", "c"]
    assert len(made.search("*", limit=2)) == 2
    assert made.search("id:a") == [
        {"id": "a", "title": "Quick Foxes", "body": "they jump", "tags": ["news", "New York"], "stars": 5,
         "at": noon}
    ]  # fmt: skip


def test_words_of_a_language_are_found_by_their_stem(index):
    made = index("id string, title string", text=("title",), tokenizer="english")
    made.put(("a", "Quick Foxes were jumping"))
    assert [row["id"] for row in made.search("fox jumps")] == ["a"]


@pytest.mark.parametrize("query", ["title:(", '"open', "nowhere:x", "stars:many", "-fox", "a OR"])
def test_a_query_that_is_wrong_is_refused_with_the_columns(index, query):
    made = index(ARTICLES, text=("title",))
    with pytest.raises(DataError, match=r"can't be parsed: .*columns are id, title, body") as caught:
        made.search(query)
    assert repr(query) in str(caught.value)
    with pytest.raises(DataError, match="limit is 0"):
        made.search("x", limit=0)


def test_no_index_is_not_an_empty_one(tmp_path):
    with pytest.raises(TargetError, match=r"there is no index at .*/nowhere; check the path"):
        SearchIndex(tmp_path / "nowhere").search("x")


SAMPLES = [
    ("string", ["", " ", "a", "ä", "a\0b", "x" * 70_000, '["a"]', "日本 🦊"]),
    ("boolean", [True, False]),
    ("byte", [-128, 0, 127]),
    ("long", [-(2**63), 0, 2**63 - 1]),
    ("float", [0.0, 1.1, float("inf")]),
    ("double", [0.0, 0.1 + 0.2, -1e300, float("inf"), float("-inf")]),
    ("decimal(38,18)", [Decimal("1E-18"), Decimal("-12345678901234567890.1"), Decimal(0)]),
    ("date", [date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)]),
    ("timestamp", [datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, 1, 2, 3, 456789, tzinfo=UTC)]),
    ("timestamp_ntz", [datetime(1, 1, 1), datetime(2026, 2, 3, 4, 5, 6, 7), datetime(9999, 12, 31)]),
    ("binary", [b"", b"\0\xff", b"x" * 1000]),
]


@pytest.mark.parametrize(("type", "values"), SAMPLES, ids=[type for type, _ in SAMPLES])
def test_keys_of_every_type_are_compared_as_values_and_nothing_is_lost(index, type, values):
    made = index(f"k {type}, n long", key=("k",))
    exact = [row["k"] for row in rows_of(f"k {type}, n long", *((value, 0) for value in values)).to_pylist()]
    made.put(*((value, 1) for value in values))
    assert sorted(made.all(), key=str) == sorted(((value, 1) for value in exact), key=str)
    made.put(*((value, 2) for value in values))
    assert sorted(made.all(), key=str) == sorted(((value, 2) for value in exact), key=str)


def test_what_spark_takes_to_be_equal_is_one_key(index):
    made = index("k double, n long", key=("k",))
    made.put((0.0, 1), (float("nan"), 1), (-0.0, 2), (float("-nan"), 2))
    assert sorted(n for _, n in made.all()) == [2, 2]


def test_the_parts_of_a_key_stay_apart(index):
    made = index("a string, b string, n long", key=("a", "b"))
    keys = [("x", "yz"), ("xy", "z"), ('x","y', "z"), ("x", '","yz'), ("", "xyz"), ("xyz", "")]
    made.put(*((*key, 1) for key in keys))
    made.put(*((*key, 2) for key in keys))
    assert sorted(made.all()) == sorted((*key, 2) for key in keys)


def test_structures_come_back_as_they_were(index):
    ddl = (
        "id int, s struct<at:timestamp,d:decimal(5,2),f:float>, m map<string,array<date>>, "
        "l array<struct<b:binary,n:timestamp_ntz>>, x map<int,struct<y:boolean>>"
    )
    made = index(ddl)
    row = (
        1,
        {"at": datetime(2020, 1, 1, tzinfo=UTC), "d": Decimal("1.10"), "f": 1.5},
        [("z", [date(9999, 1, 1), None]), ("a", None)],
        [{"b": b"\0", "n": datetime(2020, 1, 1)}, None],
        [(1, {"y": True}), (2, None)],
    )
    none = (2, None, None, None, None)
    inner = (3, {"at": None, "d": None, "f": None}, [], [], [])
    made.put(row, none, inner)
    assert sorted(made.all(), key=lambda each: each[0]) == [row, none, inner]


def test_a_null_key_is_refused_and_nothing_is_written(index):
    made = index("id string, n long")
    with pytest.raises(DataError, match=r"the key 'id' of a row is null: \{'id': None, 'n': 2\}"):
        made.put(("a", 1), (None, 2))
    assert made.all() == []
    assert made.lanes.read() == ()


def test_times_that_the_index_can_not_compare_are_the_earliest_or_latest(index):
    made = index("id int, at timestamp")
    made.put((1, datetime(9999, 12, 30, tzinfo=UTC)), (2, datetime(2, 1, 1, tzinfo=UTC)))
    assert [row["id"] for row in made.search("at:[2200-01-01T00:00:00Z TO *]")] == [1]
    assert [row["id"] for row in made.search("at:[* TO 1700-01-01T00:00:00Z]")] == [2]


def test_the_last_change_of_a_key_counts_within_a_batch_too(index):
    ddl = "id string, n long, _deleted boolean"
    made = index(ddl)
    made.put(("a", 1, False), ("b", 1, None), ("a", None, True), ("a", 2, False), ("b", None, True))
    assert made.all() == [("a", 2)]
    made.put(("a", None, True), ("nobody", None, True))
    assert made.all() == []


@pytest.mark.parametrize(
    ("ddl", "options", "said"),
    [
        ("id string, n int", {}, "column 'n' was bigint, is int"),
        ("id string", {}, "column 'n' was bigint, is gone"),
        ("id string, n long, m long", {}, "column 'm' was not there, is bigint"),
        ("id string, n long", {"text": ("id",)}, r"text was \(\), is \('id',\)"),
        ("id string, n long", {"key": ("n",)}, r"key was \('id',\), is \('n',\)"),
        ("id string, n long", {"tokenizer": "german"}, "tokenizer was 'words', is 'german'"),
    ],
)
def test_an_index_that_was_made_otherwise_is_refused(index, ddl, options, said):
    index("id string, n long").put(("a", 1))
    with pytest.raises(TargetError, match=f"{said}; rebuild the flow's target"):
        index(ddl, **options)


@pytest.mark.parametrize(
    ("ddl", "options", "said"),
    [
        ("id int, _row string", {}, "can't have a column '_row'"),
        ("id int, i interval day to second", {}, "'i' is of type interval day to second"),
        ("id int, i array<struct<x:void>>", {}, "'i' is of type"),
        ("n int", {}, "the key 'id' is not among n"),
        ("id array<int>", {}, "the key 'id' is array<int>"),
        ("id string collate UTF8_LCASE", {}, "the key 'id' is string collate"),
        ("id int", {"text": ("id",)}, "the text 'id' is int"),
        ("id int", {"text": ("t",)}, "the text 't' is not among id"),
    ],
)
def test_what_an_index_could_not_hold_is_refused_before_it_is_made(index, ddl, options, said):
    with pytest.raises(TargetError, match=said):
        index(ddl, **options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"path": ""}, "path is empty"),
        ({"tokenizer": "klingon"}, "tokenizer is 'klingon'; known are words, arabic"),
        ({"key": ()}, "an index needs a key"),
        ({"text": ("a", "a")}, "names a column twice"),
        ({"columns": ("id",), "text": "a"}, "'a' is not among columns="),
    ],
)
def test_a_declaration_checks_itself(options, said):
    with pytest.raises(TargetError, match=said):
        SearchIndex(**{"path": "x", **options})


def test_a_folder_of_something_else_is_left_alone(index, tmp_path):
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "precious.txt").write_text("x")
    with pytest.raises(TargetError, match=r"is no index: it holds 'precious.txt'"):
        index("id int")


def test_who_waits_too_long_learns_who_holds_the_index(index):
    lane = index("id int", sink="first").lanes.open(0)
    with pytest.raises(SinkError, match=r"is being written by sink 'first', process \d+ .* within 0.2 s"):
        index("id int", sink="second", wait=timedelta(seconds=0.2))
    lane.close()
    index("id int", sink="second", wait=timedelta(seconds=0.2)).lanes.open(0).close()


def test_an_executor_that_does_not_share_the_disk_is_refused(index, tmp_path):
    made = index("id int")
    made.path.rename(tmp_path / "elsewhere")
    with pytest.raises(SinkError, match="on this machine; give a path on a disk that Spark's driver"):
        made.lanes.open(0)


def test_sinks_that_share_an_index_have_entries_of_their_own(index):
    one, other = index("id int", sink="one"), index("id int", sink="other")
    one.put((1,), entry=Entry(1, FIRST))
    other.put((2,), entry=Entry(7, SECOND))
    assert one.lanes.read() == (Entry(1, FIRST),)
    assert other.lanes.read() == (Entry(7, SECOND),)
    assert sorted(one.all()) == [(1,), (2,)]


def test_a_reader_sees_each_commit_whole_while_they_come(index):
    made, sizes, over = index("id int, n int"), set(), threading.Event()

    def read():
        while not over.is_set():
            found = made.search("*")
            sizes.add((len(found), len({row["n"] for row in found})))

    made.put(*((number, 0) for number in range(50)))
    reading = threading.Thread(target=read)
    reading.start()
    for n in range(1, 20):
        made.put(*((number, n) for number in range(50)))
    over.set()
    reading.join()
    assert sizes == {(50, 1)}


def test_many_batches_leave_few_segments_and_no_garbage(index):
    made = index("id int, t string", text=("t",))
    for number in range(120):
        made.put(*((key, f"word{number}") for key in range(number, number + 10)))
    (generation,) = (made.path / "generations").iterdir()
    files = [each.name.partition(".")[0] for each in generation.iterdir() if each.name[0] != "."]
    assert len(set(files)) < 20  # segments, and two files of our own and of tantivy
    assert len(made.all()) == 129
    assert [row["id"] for row in made.search("word0")] == [0]


class TestSwap:
    @pytest.fixture
    def live(self, index):
        made = index("id int, n int")
        made.put((1, 1), (2, 1), entry=Entry(5, SECOND))
        return made

    @pytest.fixture
    def target(self, live):
        return SearchIndex(live.path)

    @pytest.fixture
    def rebuilt(self, target):
        made = Index(target.beside("rebuilt2").path, "id int, n int, more string")
        made.put((1, 9, "x"), entry=Entry(1, FIRST))
        return made

    def test_what_was_rebuilt_takes_the_place_at_once(self, live, target, rebuilt, settings):
        assert target.search("n:1") != []
        target.swap(target.beside("rebuilt2"), settings)
        assert target.search("*") == [{"id": 1, "n": 9, "more": "x"}]
        assert live.all() == [(1, 9, "x")]
        again = Index(live.path, "id int, n int, more string")
        assert again.lanes.read() == (Entry(6, FIRST),)
        assert len(list((live.path / "generations").iterdir())) == 1
        assert not rebuilt.path.exists()
        target.swap(target.beside("rebuilt2"), settings)
        assert live.all() == [(1, 9, "x")]

    def test_a_writer_of_before_is_shut_out(self, target, rebuilt, settings):
        target.swap(target.beside("rebuilt2"), settings)
        lane = SearchLanes(target.place, rebuilt.lanes.description, "flow", WAIT).open(0)
        with pytest.raises(FencedError):
            lane.entry.refuse_older(5, "flow")
        lane.close()

    @pytest.mark.parametrize("broken", ["_shut_out", "sync_folder", "point", "unlink", "remove_others"])
    def test_broken_off_anywhere_it_is_completed(self, live, target, rebuilt, settings, monkeypatch, broken):
        def killed(*_):
            raise KeyboardInterrupt

        homes = {"point": IndexFolder, "remove_others": IndexFolder}
        with monkeypatch.context() as patched:
            if broken == "unlink":
                patched.setattr("pathlib.Path.unlink", killed)
            elif broken in homes:
                patched.setattr(homes[broken], broken, killed)
            else:
                patched.setattr(f"penstock.targets.search.swap.{broken}", killed)
            with pytest.raises(KeyboardInterrupt):
                target.swap(target.beside("rebuilt2"), settings)
        assert live.all() in ([(1, 1), (2, 1)], [(2, 1), (1, 1)], [(1, 9, "x")])
        found = describe(IndexFolder(live.path).current())  # the flow may be started in between
        SearchLanes(target.place, found, "flow", WAIT).prepare(1)
        target.swap(target.beside("rebuilt2"), settings)
        assert live.all() == [(1, 9, "x")]
        assert not rebuilt.path.exists()

    def test_nothing_is_not_swapped_in(self, live, target, settings):
        with pytest.raises(TargetError, match=r"nothing was rebuilt at .*rebuilt2"):
            target.swap(target.beside("rebuilt2"), settings)
        assert len(live.all()) == 2

    def test_rows_of_another_flow_are_not_thrown_away(self, live, target, rebuilt, index, settings):
        index("id int, n int", sink="other").put((7, 7))
        with pytest.raises(TargetError, match="also holds what sink 'other' has written"):
            target.swap(target.beside("rebuilt2"), settings)
        assert len(live.all()) == 3

    def test_an_index_that_never_was_may_be_swapped_in(self, tmp_path, settings):
        target = SearchIndex(tmp_path / "new")
        Index(target.beside("first").path, "id int").put((1,))
        target.swap(target.beside("first"), settings)
        assert target.search("*") == [{"id": 1}]


def test_a_pointer_that_is_damaged_is_an_error(index):
    made = index("id int")
    (made.path / "current").write_bytes(b"{")
    with pytest.raises(TargetError, match="is not an index"):
        made.search("*")
    IndexFolder(made.path).point(Pointer("gone"))
    with pytest.raises(SinkError, match=r"the index did not open: .*gone"):
        made.search("*")


def test_the_command_shows_rows_as_a_table_or_json(index, capsys, monkeypatch):
    monkeypatch.setattr(output.console, "_file", None)
    made = index(ARTICLES, text=("title",))
    made.put(("a", "Quick Foxes", None, ["x"], 5, datetime(2026, 3, 1, tzinfo=UTC)))
    command = ["search", str(made.path)]
    app([*command, "foxes"], standalone_mode=False)
    assert "Quick Foxes" in capsys.readouterr().out
    app([*command, "foxes", "--json"], standalone_mode=False)
    assert json.loads(capsys.readouterr().out)[0]["stars"] == 5
    app([*command, "cats"], standalone_mode=False)
    assert "no row matches" in capsys.readouterr().out
    with pytest.raises(DataError):
        app([*command, "("], standalone_mode=False)


def test_without_the_package_the_error_says_what_to_install(tmp_path):
    program = (
        "import sys; sys.modules['tantivy'] = None; import penstock.targets; "
        f"penstock.targets.SearchIndex({str(tmp_path)!r}).search('x')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (
        "SetupError: a search index needs the package tantivy; pip install 'penstock[search]'" in done.stderr
    )
