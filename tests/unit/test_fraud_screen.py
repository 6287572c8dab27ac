"""A run on the screen: redrawn on a terminal, a few plain lines elsewhere."""

import time
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from penstock.apps.fraud.screen import bars, frame, lines_of, screen
from penstock.apps.fraud.status import STAGES, Status


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def status(clock):
    return Status(clock)


@pytest.fixture
def watched(status):
    """A run with 1,000 transactions and an alert."""
    alert = SimpleNamespace(card="card-000042", reason="fast", evidence=["t1", "t2"])
    listener = SimpleNamespace(new=1, heard=4, recent=[(time.time(), 0.017, alert)])
    status.watch(SimpleNamespace(sent=1_000), listener, int)
    return status


def drawn(status, width=80):
    console = Console(file=StringIO(), width=width)
    console.print(frame(status))
    return console.file.getvalue()


def test_all_stages_are_shown_before_the_first_begins(status):
    assert all(title in drawn(status) for title in STAGES.values())


def test_what_is_done_has_a_tick_and_what_goes_on_its_note(status, clock):
    status.enter("services")
    clock.now = 4.2
    status.enter("model", "of the past")
    first, second, third, *_ = drawn(status).splitlines()
    assert first.startswith("✓")
    assert "4.2 s" in first
    assert "of the past" in second
    assert third.split() == ["start", "the", "flows", "on", "Spark"]


def test_figures_and_the_latest_alerts_are_shown(watched, clock):
    clock.now = 1.0
    text = drawn(watched)
    for part in ("1,000", "1,000/s", "17 ms", "3 alerts re-emitted", "card-000042", "fast", "2 transactions"):
        assert part in text


def test_while_it_checks_it_shows_how_far_it_is(watched):
    watched.checked, watched.to_check = 400, 1_000
    assert "400" in drawn(watched)
    assert "of 1,000" in drawn(watched)


def test_every_frame_fits_a_small_terminal(watched):
    watched.enter("kill", "a note that is a good deal longer than what there is room for on a small screen")
    watched.checked = 1
    lines = drawn(watched, width=60).splitlines()
    assert len(lines) <= 22
    assert max(map(len, lines)) <= 60


def test_at_the_end_only_the_stages_stay(watched):
    for stage in STAGES:
        watched.enter(stage)
    watched.end()
    assert len(drawn(watched).splitlines()) == len(STAGES)
    assert drawn(watched).count("✓") == len(STAGES)


@pytest.mark.parametrize(("interrupted", "shown"), [(True, "interrupted"), (False, "failed")])
def test_a_stage_that_did_not_end_is_marked(status, interrupted, shown):
    status.enter("services")
    if interrupted:
        status.interrupt()
    status.end()
    assert drawn(status).startswith("✗")
    assert shown in drawn(status)


def test_bars_are_drawn_on_a_scale():
    assert bars([]) == ""
    assert bars([0, 0]) == "▁▁"
    assert bars([0, 1, 99], least=1, most=4.5) == "▁▁█"


def test_a_line_is_due_at_news_and_every_five_seconds(watched, clock):
    lines = lines_of(watched)
    watched.enter("steady", "65 s")
    assert lines.due() == "0:00  judge transactions: 65 s"
    clock.now = 4.9
    assert lines.due() is None
    clock.now = 65.0
    line = lines.due()
    assert line.startswith("1:05    1,000 transactions (")
    assert line.endswith("1 alerts (0/s), p50 17 ms, p99 17 ms")
    watched.note = "something new"
    assert lines.due() == "1:05  judge transactions: something new"
    assert lines.due() is None


def test_a_line_says_how_far_the_check_is(watched, clock):
    lines = lines_of(watched)
    watched.enter("check")
    lines.due()
    watched.checked, watched.to_check, clock.now = 400, 1_000, 5.0
    assert lines.due() == "0:05    400 of 1,000 transactions checked, 1 alerts"


def test_a_terminal_is_redrawn_in_place():
    status, console = Status(), Console(file=StringIO(), force_terminal=True, width=80)
    with screen(status, console):
        status.enter("services")
        time.sleep(0.6)
    assert status.ended is not None
    written = console.file.getvalue()
    assert "\x1b[1A\x1b[2K" in written  # up a line, and clear it
    assert "services" in written


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "_environ": {"TERM": "dumb"}}])
def test_elsewhere_it_is_a_few_plain_lines(options):
    status, console = Status(), Console(file=StringIO(), width=80, **options)
    with screen(status, console):
        status.enter("services")
        time.sleep(0.3)
        status.enter("model", "of [the] past")
        time.sleep(0.3)
    assert console.file.getvalue() == "0:00  services\n0:00  train the model: of [the] past\n"
