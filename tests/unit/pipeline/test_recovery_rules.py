"""Going on from the ledger: a flow that was swapped in has passed what the one before it has written."""

from types import SimpleNamespace

import pytest
from tests.stored_checkpoint import Stored

from penstock.errors import FlowError
from penstock.identity import Identity
from penstock.log.ledger import Batch, Entry
from penstock.pipeline.job import Cut, Job
from penstock.pipeline.pinning import has_passed
from penstock.pipeline.recovery import Recovery

CUT = Cut({"a": {0: 9, 1: 4}}, 5)


def settled(end, cut=CUT):
    checkpoint = Stored({"offsets/0": "of an old one"})
    topics = SimpleNamespace(refuse_made_again=lambda _: None, open=lambda: None)
    job = Job(SimpleNamespace(name="large"), Identity("shop.large", 7), cut=cut)
    entries = (Entry(3, Batch("lost", 4, {}, {"a": end})),) * 2
    Recovery(job, None, checkpoint, topics).settle(None, entries, lambda *_: None)
    return checkpoint


def test_a_checkpoint_that_was_lost_behind_the_cut_is_behind_it_again():
    checkpoint = settled({0: 9, 1: 7})
    assert has_passed(checkpoint, CUT)
    assert checkpoint.last_planned() is None
    assert settled({0: 1}, cut=None).files == {}


def test_one_that_was_lost_before_the_cut_would_emit_again():
    with pytest.raises(FlowError, match=r"before it had come to .* `penstock rollback shop large`"):
        settled({0: 9, 1: 3})
