"""A short campaign: the quick kinds of faults, and the verifications of the flows at the end."""

import pytest
from tests.chaos.campaign import run_campaign

QUICK = ("drop_kafka_reply", "drop_postgres_reply", "kill_between_lanes", "change_code")
OTHERS = (
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


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "kinds", [QUICK, pytest.param(OTHERS, marks=pytest.mark.long)], ids=["quick", "others"]
)
def test_nothing_is_lost_and_nothing_doubled_whatever_fails(spark, tmp_path, kinds):
    record = run_campaign(tmp_path, spark, seed=3, kinds=kinds, check_every=100)
    assert len(record.landed) == len(kinds), record.missed
    assert record.ok
