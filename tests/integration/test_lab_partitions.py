"""Experiment 4: its figures are what the group's coordinator and the log say, also with a killed leader."""

import pytest
from confluent_kafka.admin import AdminClient
from tests.laboratory import tried

from penstock.lab.experiments.partitions.experiment import ACKS, EXPERIMENT
from penstock.lab.experiments.partitions.member import STRATEGIES
from penstock.log import Broker, Groups

EAGER, COOPERATIVE = STRATEGIES


def described(settings, name):
    """What the coordinator says: by client, the partitions that it has."""
    admin = AdminClient(settings.client())
    found = admin.describe_consumer_groups([name])[name].result(60)
    return {
        each.client_id: sorted(place.partition for place in each.assignment.topic_partitions)
        for each in found.members
    }


def shown(found):
    """The same by the experiment's figures."""
    members = {f"consumer-{each['number']}": [] for each in found["members"]}
    for number, each in enumerate(found["partitions"]):
        members[f"consumer-{each['owner']}"].append(number)
    return members


def is_settled(members, idle):
    return lambda found: (
        found.get("consumers") == members
        and found["idle"] == idle
        and all(each["owner"] for each in found["partitions"])
    )


def test_six_partitions_keep_six_of_eight_consumers_busy(settings):
    with tried(EXPERIMENT, settings, keys=20, rate=60, speed=100) as lab:
        lab.until(is_settled(2, 0))
        topic, group = lab.name_of("events"), lab.name_of("group")
        for _ in range(6):
            lab.press("add")
        found = lab.until(lambda found: is_settled(8, 2)(found) and len(found["keys"]) == 20)
        assert shown(found) == described(settings, group)
        assert found["rebalances"] >= 2
        assert found["moved"] >= 6
        assert found["worst_pause"] > 0
        for _ in range(2):
            lab.press("remove")
        lab.until(is_settled(6, 0))
        ends = Broker(settings).offsets(topic)
        found = lab.until(lambda found: found["events"] >= sum(end for _, end in ends.values()))
        assert len(found["partitions"]) == len(ends) == 6
    assert topic not in Broker(settings).topics()
    assert group not in {each.group for each in Groups(settings).all()}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_cooperative_rebalances_move_fewer_partitions(settings):
    moved = {}
    for strategy in (EAGER, COOPERATIVE):
        with tried(EXPERIMENT, settings, strategy=strategy, rate=50) as lab:
            before = lab.until(is_settled(2, 0))
            lab.press("add")
            after = lab.until(is_settled(3, 0))
            moved[strategy] = after["moved"] - before["moved"]
            group = lab.name_of("group")
        assert group not in {each.group for each in Groups(settings).all()}
    assert moved[EAGER] >= 6 > moved[COOPERATIVE] >= 2


@pytest.mark.long
@pytest.mark.timeout(500)
def test_a_killed_leader_loses_what_only_it_had(settings):
    with tried(EXPERIMENT, settings, part=ACKS, acks="1", rate=200) as lab:
        lab.until(lambda found: found.get("acknowledged", 0) > 300, 170)
        lab.press("kill")
        found = lab.until(lambda found: len(found["rounds"]) == 1, 120)
        (first,) = found["rounds"]
        assert first["acks"] == "1"
        assert first["lost"] >= found["alone"] * 0.5 > 0
        assert first["found"] + first["lost"] == first["acknowledged"]
        assert first["then"] != first["leader"]
        lab.change(acks="all")
        lab.until(lambda found: found["acks"] == "all" and found["acknowledged"] > 300, 120)
        lab.press("kill")
        second = lab.until(lambda found: len(found["rounds"]) == 2, 120)["rounds"][1]
        assert (second["acks"], second["lost"]) == ("all", 0)
        assert second["found"] == second["acknowledged"] > 300
