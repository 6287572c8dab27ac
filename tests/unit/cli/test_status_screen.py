"""What `penstock status` shows, in a hundred columns."""

import io
import json

import pytest
from rich.console import Console
from tests.observed_system import AT, COUNTS, flow, group, lag, sample, system

from penstock.cli import status
from penstock.cli.output import plain
from penstock.cli.status_screen import screen
from penstock.ops.document import document
from penstock.ops.model import DeadLetterStatus, System
from penstock.pipeline.flow_status import LatencyHistogram


def shown(found, width=100):
    out = io.StringIO()
    Console(file=out, width=width, emoji=False, highlight=False).print(screen(found))
    return [line.rstrip() for line in out.getvalue().splitlines()]


def line_of(lines, first):
    return next(line.split() for line in lines if line.startswith(first))


def test_every_section_is_there_and_fits():
    lines = shown(system(unanswered=("queues: denied",)))
    assert max(map(len, lines)) <= 100
    heads = [line.split("  ")[0] for line in lines]
    for each in ("service", "flow", "group", "capture", "replica", "archive of", "dead letters of"):
        assert each in heads
    assert "not answered: queues: denied" in lines


def test_sections_without_anything_are_left_out():
    assert shown(System(AT)) == []
    assert [line.split()[0] for line in shown(System(AT, groups=(group(),)))] == ["group", "billing"]


def test_the_figures_of_a_flow():
    lines = shown(system(), width=140)
    found = " ".join(line_of(lines, "shop.bill"))
    assert found == "shop.bill running 10 ≤100 ms ≤500 ms -40 s 1,500 2 MB 800 ms 12 topic receipts"
    assert "  shop.bill: started again 2 times" in lines
    assert "  shop.bill: 90 s ago: the broker went away" in lines
    assert "  shop.bill: last batch source 500 ms, state 0 s, sink 300 ms, overhead 0 s" in lines


@pytest.mark.parametrize(("rows", "shown_as"), [(1500, "1,500 2 MB"), (None, "2 MB"), (0, "–")])
def test_state_is_shown_by_its_bytes_where_its_rows_are_not_counted(rows, shown_as):
    lines = shown(system(flows=(flow(samples=(sample(AT - 2, state_rows=rows),)),)), width=140)
    assert f"-40 s {shown_as} 800 ms" in " ".join(line_of(lines, "shop.bill"))


def test_percentiles_are_those_of_the_last_events():
    on_time = LatencyHistogram((100,) * len(COUNTS), 100, 1.0)
    lines = shown(system(flows=(flow(recent=on_time),)), width=140)
    assert line_of(lines, "shop.bill")[3:7] == ["≤50", "ms", "≤50", "ms"]


def test_a_flow_whose_process_is_gone_is_silent_and_one_that_is_rebuilt_says_its_generation():
    gone = flow(at=AT - 300, generation=2, samples=(sample(AT - 300),))
    lines = shown(system(flows=(gone,)), width=160)
    assert line_of(lines, "shop.bill (generation 2)")[3] == "silent"
    assert "  shop.bill: host/17 said nothing for 5 min" in lines


OWN = (group("penstock.shop.bill", lags=(lag(position=0, end=2001), lag(1, 5, 10))),)


@pytest.mark.parametrize(
    ("changes", "groups", "behind"),
    [
        ({}, OWN, 12),
        ({"at": AT - 300}, OWN, 2006),
        ({"state": "stopped"}, OWN, 2006),
        ({"state": "done"}, OWN, 2006),
        ({"state": "starting", "samples": ()}, OWN, 2006),
        (
            {"label": "team:shop.bill", "state": "stopped"},
            (group("penstock:team.shop.bill", lags=(lag(),)),),
            40,
        ),
        ({"state": "stopped"}, (), None),
        ({"state": "starting"}, (group("penstock.shop.bill"),), None),
        ({"state": "stopped", "generation": 1, "shadow": True}, OWN, None),
    ],
)
def test_of_a_flow_that_does_not_run_the_lag_of_its_group_is_shown(changes, groups, behind):
    found = system(flows=(flow(**changes),), groups=groups)
    label = changes.get("label", "shop.bill")
    cells = line_of(shown(found, width=160), label)
    assert cells[-3] == ("–" if behind is None else f"{behind:,}")
    assert document(found)["flows"][0]["behind"] == behind


def test_a_group_shows_its_lag_and_what_retention_leaves_it():
    lags = (lag(left=3600.0, seconds=30.0), lag(1, 5, 10, 90.0, left=7000.0))
    lines = shown(System(AT, groups=(group(lags=lags, judgement="stalled"),)))
    found = " ".join(line_of(lines, "billing"))
    assert found == "billing consumer stable 1 45 90 s stalled 60 min orders"


def test_dead_letters_are_shown_while_some_wait():
    waits = System(AT, dead_letters=(DeadLetterStatus("a.dead-letters", "a", 2, AT - 60, "no JSON", 5),))
    assert " ".join(line_of(shown(waits), "a ")) == "a 2 5 60 s ago no JSON"
    assert shown(System(AT, dead_letters=(DeadLetterStatus("a.dead-letters", "a", 0, kept=5),))) == []


def test_names_with_signs_of_markup_are_shown_as_they_are():
    assert "[red]odd" in shown(System(AT, groups=(group("[red]odd"),)))[1]


def test_the_document_is_json_with_the_figures_that_are_made():
    found = json.loads(json.dumps(document(system()), default=plain))
    assert [each["state"] for each in found["services"]] == ["running"]
    assert found["groups"][0]["events"] == 40
    assert found["groups"][0]["lags"][0]["commits"] == [{"at": AT, "position": 60, "end": 100}]
    assert (found["flows"][0]["latency_p50"], found["flows"][0]["latency_p99"]) == (0.1, 0.5)
    assert found["flows"][0]["watermark_delay"] == 40
    assert found["topics"][0]["events"] == 140


def test_watching_ends_with_ctrl_c(monkeypatch):
    looks = []

    class Collector:
        def look(self):
            looks.append(1)
            return system()

    def slept(_):
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("penstock.cli.status.time.sleep", slept)
    status._watch(Collector(), 0.5)
    assert len(looks) == 3
