"""A runner's claim to its flow: who was taken over, or replaced, does not come back by trying again."""

from types import SimpleNamespace

import pytest

from penstock.errors import FencedError, FlowError, SinkError
from penstock.identity import Identity
from penstock.log.ledger import Entry
from penstock.pipeline.claim import Claim


class Ledger:
    """What two lanes have written down, and who opened them."""

    def __init__(self):
        self.lanes = [Entry(), Entry()]


class Sink:
    id = "shop.large"

    def __init__(self, ledger, *, breaks_off=False):
        self.ledger, self.breaks_off = ledger, breaks_off

    def entries(self):
        return tuple(self.ledger.lanes)

    def open(self):
        epoch = max(each.epoch for each in self.ledger.lanes) + 1
        for number in range(2):
            self.ledger.lanes[number] = Entry(epoch)
            if self.breaks_off:
                raise SinkError("the broker is away")
        return self.entries()


def claim(generations=None, *, rebuilds=False):
    made = Claim(SimpleNamespace(identity=Identity("shop.large", 7), rebuilds=rebuilds), None)
    nothing = SimpleNamespace(refuse_former=lambda _: None, refuse_discarded=lambda _: None)
    made.__dict__["_generations"] = generations or nothing
    return made


def test_a_writer_that_was_taken_over_does_not_shut_its_successor_out():
    ledger, ours = Ledger(), claim()
    assert [each.epoch for each in ours.take(Sink(ledger))] == [1, 1]
    assert [each.epoch for each in ours.take(Sink(ledger))] == [2, 2], "a try of its own comes again"
    claim().take(Sink(ledger))
    with pytest.raises(FencedError, match="a writer of epoch 3, this one has 2"):
        ours.take(Sink(ledger))
    assert [each.epoch for each in ledger.lanes] == [3, 3]


def test_an_opening_that_broke_off_is_no_other_writer():
    ledger, ours = Ledger(), claim()
    ours.take(Sink(ledger))
    with pytest.raises(SinkError):
        ours.take(Sink(ledger, breaks_off=True))
    assert [each.epoch for each in ours.take(Sink(ledger))] == [3, 3]


@pytest.mark.parametrize(("rebuilds", "asked"), [(False, "refuse_former"), (True, "refuse_discarded")])
def test_a_swap_that_has_begun_while_the_sink_was_opened_is_found(rebuilds, asked):
    ledger = Ledger()

    def refuse(identity):
        assert identity.generation == 7
        if ledger.lanes[1].epoch:
            raise FlowError("it is being replaced")

    ours = claim(SimpleNamespace(**{asked: refuse}), rebuilds=rebuilds)
    ours.refuse_replaced()
    with pytest.raises(FlowError, match="is being replaced"):
        ours.take(Sink(ledger))
