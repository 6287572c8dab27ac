"""The parts of the bank's demo: what is expected, the report, and what is shown meanwhile."""

from collections import Counter
from datetime import UTC, date, datetime
from decimal import Decimal
from io import StringIO

import pytest
from rich.console import Console

from penstock.apps.bank.account import Deposited, MoneySent, Opened, TransferSettled, account
from penstock.apps.bank.described import described, verdict
from penstock.apps.bank.expected import Book
from penstock.apps.bank.report import Report
from penstock.apps.bank.status import STAGES
from penstock.apps.bank.transfer import TransferCompleted, TransferPaid, TransferRequested, transfer
from penstock.apps.demo.screen import frame, lines_of, screen
from penstock.apps.demo.status import RunStatus
from penstock.sourcing import Append, Context

TEN = Decimal("10.00")


def records(aggregate, stream, *events, day=5):
    made = Append(aggregate.category, stream, 0, events, aggregate.types)
    return made.records(datetime(2026, 3, day, tzinfo=UTC), Context(), None)


def shown(what):
    console = Console(width=140, record=True, file=StringIO())
    console.print(what)
    return console.export_text()


def fine(**changes):
    report = Report(events=9, accepted=5, ends=Counter(completed=2, failed=1), delays=[0.1, 0.2])
    report.paid_in = report.balances = TEN
    for name, value in changes.items():
        setattr(report, name, value)
    return report


def test_the_book_is_folded_from_records():
    sent = (Opened("Ada"), Deposited(TEN * 2), MoneySent("t", TEN))
    book = Book.of([*records(account, "ada", *sent), *records(transfer, "t", _asked(), TransferPaid())])
    assert (book.balances, book.under_way, book.unfinished) == (TEN, TEN, 1)
    assert dict(book.months) == {("ada", date(2026, 3, 1)): (TEN * 2, TEN, 2)}
    assert sorted(book.movements.values()) == [("ada", -TEN), ("ada", TEN * 2)]
    assert (len(book.ids), book.versions) == (5, {"ada": 3})
    ended = (_asked(), TransferPaid(), TransferCompleted())
    over = Book.of([*records(account, "ada", *sent, TransferSettled("t")), *records(transfer, "t", *ended)])
    assert (over.under_way, over.unfinished) == (0, 0)


def _asked():
    return TransferRequested("ada", "bob", TEN)


def test_a_report_is_complete_when_nothing_is_wrong():
    assert fine().complete
    assert "no money lost or made" in str(verdict(fine()))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"balances": TEN - 1}, "1.00 of the money is gone"),
        ({"balances": TEN - 1, "under_way": Decimal(1)}, "1 is still under way"),
        ({"ends": Counter(paid=1)}, "1 transfers did not end"),
        ({"differing": {"balances": 2}}, "rows differ: {'balances': 2}"),
        ({"missing": 3}, "3 events are not on their topic"),
        ({"doubled": 3}, "3 are there twice"),
        ({"disordered": 1}, "1 are out of order"),
        ({"events": 0}, "nothing happened"),
    ],
)
def test_whatever_is_wrong_is_said(changes, what):
    report = fine(**changes)
    assert not report.complete
    assert what in str(verdict(report))


def test_the_report_has_its_figures():
    text = shown(described(fine(refused=Counter(MoneyLeft=3)), 80.0))
    assert "MoneyLeft 3" in text
    assert "2 completed, 1 failed" in text
    assert "80.0 s" in text


def test_lines_come_at_news_and_every_few_seconds():
    now = [0.0]
    status = RunStatus(STAGES, lambda: now[0])
    status.figures = lambda: [("accepted", "7", "so far")]
    lines = lines_of(status)
    status.enter("open", "many")
    assert lines.due() == "0:00  open accounts: many"
    assert lines.due() is None
    now[0] = 6.0
    assert lines.due() == "0:06    accepted 7 (so far)"


def test_the_screen_shows_stages_and_ends_with_them():
    status = RunStatus(STAGES)
    with screen(status, Console(file=StringIO())):
        for name in STAGES:
            status.enter(name)
        assert "stop everything" in shown(frame(status))
    assert status.complete
    assert shown(frame(status)).count("✓") == len(STAGES)


def test_an_interrupted_run_is_shown_as_such():
    status = RunStatus(STAGES)
    status.enter("work")
    status.interrupt()
    status.end()
    assert "interrupted" in shown(frame(status))
