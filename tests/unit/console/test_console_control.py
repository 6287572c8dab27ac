"""Actions are written down, whatever comes of them; sizes of topics are those of their records."""

import json

import pytest
from tests.observed_system import system

from penstock.console.sized_look import SizedLook
from penstock.control import schema_registration
from penstock.control.action import Outcome, carry_out
from penstock.control.audit import AUDIT, last_lines, recorded, write_down
from penstock.control.group_reset import position
from penstock.control.schema_registration import SchemaRegistration
from penstock.errors import (
    ConfigurationError,
    FlowError,
    InternalError,
    InvalidSchemaError,
    SettingsError,
)
from penstock.ops.doctor.declared import Declared
from penstock.ops.doctor.finding import Fix
from penstock.ops.doctor.fixing import carry_out as carry_out_fix
from penstock.schemas import SchemaKind
from penstock.settings import Settings


class Planned:
    """An action of a test."""

    name, subject = "test.act", "something"

    def __init__(self, error=None):
        self._error = error

    def preview(self, settings):
        return Outcome("it would be done")

    def act(self, settings):
        if self._error is not None:
            raise self._error
        return Outcome("it is done")


def test_what_is_done_and_what_fails_is_written_down(tmp_path):
    settings = Settings(data=tmp_path / "data")
    assert carry_out(Planned(), settings, "ann").summary == "it is done"
    with pytest.raises(FlowError):
        carry_out(Planned(FlowError("it broke")), settings, "ann")
    lines = last_lines(settings.data)
    assert {(each["user"], each["action"]) for each in lines} == {("ann", "test.act")}
    assert [each["outcome"] for each in lines] == ["failed: it broke", "begun", "done: it is done", "begun"]


@pytest.mark.parametrize(
    "error", [RuntimeError("a client broke"), OSError(28, "no room"), KeyboardInterrupt()]
)
def test_a_failure_of_any_kind_is_written_down_and_raised(tmp_path, error):
    settings = Settings(data=tmp_path / "data")
    with pytest.raises(type(error)):
        carry_out(Planned(error), settings, "ann")
    assert last_lines(settings.data)[0]["outcome"] == f"failed: {type(error).__name__}: {error}"


def test_what_can_not_be_written_down_is_not_begun(tmp_path):
    (tmp_path / "data").write_text("no folder")
    done = []
    planned = Planned()
    planned.act = done.append
    with pytest.raises(SettingsError, match=r"actions\.jsonl can't be written"):
        carry_out(planned, Settings(data=tmp_path / "data"), "ann")
    assert done == []


def test_a_failure_is_raised_even_if_the_log_can_not_be_written_any_more(tmp_path):
    settings = Settings(data=tmp_path / "data")

    class Breaking(Planned):
        def act(self, settings):
            (settings.data / AUDIT).unlink()
            (settings.data / AUDIT).mkdir()
            raise FlowError("it broke")

    with pytest.raises(FlowError, match="it broke"):
        carry_out(Breaking(), settings)


def test_what_is_done_is_no_failure_where_it_can_not_be_written_down(tmp_path):
    written = []

    def write(outcome):
        if written:
            raise SettingsError("the audit log can't be written")
        written.append(outcome)

    assert recorded(write, lambda: 3, str) == 3
    assert written == ["begun"]


def test_a_subject_of_any_length_hides_no_other_line(tmp_path):
    settings, planned = Settings(data=tmp_path), Planned()
    planned.subject = "\N{GRINNING FACE}" * 600_000
    carry_out(planned, settings)
    newest, _ = last_lines(tmp_path)
    assert len(newest["subject"]) == 500


def test_a_fix_is_written_down_before_and_after(tmp_path):
    with pytest.raises(InternalError, match="not declared"):
        carry_out_fix(Fix("apply-topic", "sales", "apply"), Settings(data=tmp_path), Declared())
    newest, first = last_lines(tmp_path)
    assert (first["action"], first["outcome"]) == ("doctor.apply-topic", "begun")
    assert newest["outcome"] == "failed: topic 'sales' is not declared"


def test_a_line_that_is_cut_off_hides_no_other(tmp_path):
    write_down(tmp_path, "a", "b", "done")
    with (tmp_path / AUDIT).open("a") as log:
        log.write('{"at": "2026\n[1]\n')
    write_down(tmp_path, "c", "x" * 2_000, "y" * 2_000)
    newest, first = last_lines(tmp_path)
    assert (first["action"], newest["action"], len(newest["outcome"])) == ("a", "c", 500)


def test_a_long_audit_log_is_read_from_its_end(tmp_path):
    for number in range(3_000):
        write_down(tmp_path, "a", f"{number} {'x' * 100}", "done", "ann")
    found = last_lines(tmp_path, 50)
    assert [each["subject"].split()[0] for each in found] == [str(n) for n in range(2_999, 2_949, -1)]


def test_a_line_holds_what_a_stranger_wrote_as_one_line(tmp_path):
    write_down(tmp_path, "a", 'x"}\n{"forged": 1}', "done")
    assert len((tmp_path / AUDIT).read_text().splitlines()) == 1
    assert json.loads((tmp_path / AUDIT).read_text())["subject"] == 'x"}\n{"forged": 1}'


@pytest.fixture
def no_registry(monkeypatch):
    """A broker without the registry's topic; whoever opens a registry would make it."""

    class Untouched:
        def __init__(self, _):
            pass

        def exists(self, name):
            return name != "_penstock_schemas"

    monkeypatch.setattr(schema_registration, "Broker", Untouched)
    monkeypatch.setattr(schema_registration, "Registry", lambda _: pytest.fail("the registry is opened"))


def test_a_dry_run_of_the_first_schema_makes_no_registry(no_registry):
    text = '{"type": "record", "name": "Order", "fields": []}'
    shown = SchemaRegistration("orders-value", SchemaKind.AVRO, text).preview(Settings())
    assert shown.summary.startswith("compatible: the first version of orders-value")
    with pytest.raises(InvalidSchemaError):
        SchemaRegistration("orders-value", SchemaKind.AVRO, '{"type": "recor"}').preview(Settings())


@pytest.mark.parametrize("text", ["", "never", "0=x", "0=1=2", "0=-1", "__import__('os')"])
def test_a_position_that_is_none(text):
    with pytest.raises(ConfigurationError):
        position(text)


def test_sizes_are_those_of_a_broker_on_this_machine(tmp_path):
    for folder, bytes in (("orders-0", 700), ("orders-1", 300), ("orders-x-0", 5)):
        (tmp_path / "kafka" / "data" / folder).mkdir(parents=True)
        (tmp_path / "kafka" / "data" / folder / "00000000000000000000.log").write_bytes(b"x" * bytes)
        (tmp_path / "kafka" / "data" / folder / "00000000000000000000.index").write_bytes(b"x" * 9_000)

    def sized(servers):
        settings = Settings(kafka={"bootstrap.servers": servers}, data=tmp_path)
        return SizedLook(system, settings)().topics[0].bytes

    assert sized("127.0.0.1:9092") == 1_000
    assert sized("broker-1:9092,127.0.0.1:9092") is None
