"""A short campaign: the quick kinds of faults, and the verifications of the flows at the end."""

import pytest
from tests.chaos.campaign import run_campaign

FAULTS = (
    "cut_kafka",
    "drop_kafka_reply",
    "drop_postgres_reply",
    "delay_kafka",
    "kill_database",
    "drop_postgres_reply",
    "drop_kafka_reply",
    "kill_broker",
    "delay_postgres",
    "cut_postgres",
    "pause_database",
    "kill_between_lanes",
    "add_partitions",
    "change_code",
    "lose_checkpoint",
)


@pytest.mark.timeout(600)
def test_nothing_is_lost_and_nothing_doubled_whatever_fails(spark, tmp_path):
    record = run_campaign(tmp_path, spark, seed=3, kinds=FAULTS, check_every=100)
    assert len(record.landed) >= 13, record.missed
    assert record.ok
