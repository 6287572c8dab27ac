"""The harness finds the bugs that are planted in `planted.py`, each in a flow of its own, and no other."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from tests import quick
from tests.integration.planted import planted, sales
from tests.integration.shop import make_sales

from penstock.log import Broker, Producer, apply
from penstock.pipeline import verify
from penstock.testing import CrashHarness

MODULE = str(Path(__file__).with_name("planted.py"))
# Where each flow is when the process dies; those that are not named go wrong without dying.
HELD = {
    "healthy": "flow.planned",
    "marker_skipped": "flow.written",
    "commit_first": "sink.kafka.committed",
    "number_only": "flow.committed",
    "no_transaction": "sink.kafka.sent",
    "random_spread": "sink.kafka.committed",
    "later": "flow.committed",
    "ledger_first": "sink.postgres.before-merge",
}


def feed(settings, number):
    with Producer(settings) as producer:
        producer.send_all(sales, make_sales(200, seed=number, start=1000 * number))
        producer.send_bytes(sales.name, b"c1", b"not a sale")


def abort(settings):
    """Events that were never committed stand in the log too."""
    producer = Producer(settings, kafka={"transactional.id": "planted.aborted"})
    producer.client.init_transactions(10)
    producer.client.begin_transaction()
    producer.send_all(sales, make_sales(20, seed=99, start=99_000))
    producer.flush()
    producer.client.abort_transaction(10)


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_harness_finds_every_planted_bug(settings, spark, tmp_path):
    settings = replace(settings, data=tmp_path, spark=quick.SPARK)
    apply([sales], Broker(settings))
    abort(settings)
    harness = CrashHarness(
        planted, MODULE, settings, feed=lambda number: feed(settings, number + 1), timeout=180
    )
    try:
        harness.kill_at(HELD)
        shutil.rmtree(tmp_path / "flows" / "planted" / "number_only")
        harness.finish()
    finally:
        harness.close()
    verifications = {verification.flow: verification for verification in verify(planted, settings, spark)}
    assert verifications["healthy"].ok, verifications["healthy"]
    undiscovered = [
        name for name, verification in verifications.items() if verification.ok and name != "healthy"
    ]
    assert undiscovered == []
    assert len(verifications) >= 9
