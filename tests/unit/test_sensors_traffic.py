"""Readings with known alerts, and gateways that are cut off."""

from datetime import timedelta

import pytest

from penstock.apps.sensors.events import GATEWAYS, Reading
from penstock.apps.sensors.expected import alerts_of
from penstock.apps.sensors.traffic import START, Traffic

COUNT = 20_000


def machine(*readings):
    """Readings of a machine, as pairs of seconds and degrees."""
    return [
        Reading("m", "north", float(degrees), START + timedelta(seconds=seconds), id=f"r{seconds}")
        for seconds, degrees in readings
    ]


def at(seconds):
    return START + timedelta(seconds=seconds)


@pytest.fixture(scope="module")
def traffic():
    made = Traffic(machines=60, seed=2)
    sent = [made.next() for _ in range(COUNT)]
    return made, [*sent, *made.rest()]


def test_the_third_hot_reading_is_an_alert_until_the_machine_cools_down():
    hot = [(5 * number, 95) for number in range(5)]
    found = alerts_of([machine(*hot, (25, 70), (30, 95), (35, 95), (40, 95))], at(0))
    assert found == {"r10/hot": ("hot", at(10)), "r40/hot": ("hot", at(40))}


def test_two_hot_readings_or_three_that_are_far_apart_are_no_alert():
    assert alerts_of([machine((0, 95), (5, 95), (10, 70)), machine((0, 95), (5, 95), (85, 95))], at(0)) == {
        "r5/silent": ("silent", at(35))
    }


def test_a_machine_is_silent_from_exactly_thirty_seconds_on():
    found = alerts_of([machine((0, 70), (29, 70), (59, 70))], at(89))
    assert found == {"r29/silent": ("silent", at(59)), "r59/silent": ("silent", at(89))}
    assert alerts_of([machine((0, 70), (29, 70))], at(58)) == {}


def test_all_readings_are_sent_and_those_of_a_gateway_in_order(traffic):
    made, sent = traffic
    own = [reading for reading in sent if not reading.machine.startswith("gateway")]
    assert sorted(reading.id for reading in own) == sorted(
        reading.id for machine in made.machines for reading in machine.readings
    )
    for gateway in GATEWAYS:
        times = [reading.at for reading in sent if reading.gateway == gateway]
        assert times == sorted(times)


def test_a_gateway_is_cut_off_for_longer_than_counts_as_silence(traffic):
    made, sent = traffic
    highest, latest = START, timedelta(0)
    for reading in sent:
        latest = max(latest, highest - reading.at)
        highest = max(highest, reading.at)
    assert made.outages > 5
    assert timedelta(seconds=60) < latest < timedelta(seconds=240)


def test_there_are_alerts_of_both_kinds(traffic):
    made, _ = traffic
    found = alerts_of((machine.readings for machine in made.machines), min(made.reached.values()))
    assert sum(kind == "hot" for kind, _ in found.values()) > 20
    assert sum(kind == "silent" for kind, _ in found.values()) > 20


def test_the_same_seed_gives_the_same_readings(traffic):
    again = Traffic(machines=60, seed=2)
    assert [again.next() for _ in range(1_000)] == traffic[1][:1_000]
