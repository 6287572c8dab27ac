"""A short campaign: the quick kinds of faults, and the verifications of the flows at the end."""

import pytest
from tests.chaos.campaign import run_campaign

QUICK = ("kill_between_lanes",)
OTHERS = (
    "drop_postgres_reply",
    "drop_kafka_reply",
    "change_code",
    "cut_kafka",
    "delay_kafka",
    "kill_database",
    "kill_broker",
    "delay_postgres",
    "cut_postgres",
    "pause_database",
    "add_partitions",
    "lose_checkpoint",
)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kinds", [QUICK, OTHERS], ids=["quick", "others"])
def test_nothing_is_lost_and_nothing_doubled_whatever_fails(spark, tmp_path, kinds):
    record = run_campaign(tmp_path, spark, seed=3, kinds=kinds, check_every=100)
    assert len(record.landed) == len(kinds), record.missed
    assert record.ok
