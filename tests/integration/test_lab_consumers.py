"""Experiment 2: the offsets shown are those of the groups, and a replay reads the same events again."""

import pytest
from tests.laboratory import tried

from penstock.lab.experiments.consumers.experiment import EXPERIMENT, NAMES
from penstock.log import Broker, Groups


def committed(settings, run):
    """What the broker has of the three groups."""
    topic = run.name_of("readings")
    return {name: Groups(settings).positions(run.name_of(name)).get(topic, {}).get(0, 0) for name in NAMES}


def test_three_groups_read_one_stream(settings):
    with tried(EXPERIMENT, settings, events=20_000, rate=0, slow=1_000) as run:
        run.until(lambda now: now["fast"] == now["end"] == 20_000 and 0 < now["slow"] < 19_000)
        run.press("end")
        run.until(lambda now: now["slow"] == 20_000)
        run.change(rate=500)
        run.until(lambda now: now["end"] > 20_200 and now["p99_alone"] is not None)
        run.change(rate=0)
        run.until(lambda now: all(now[name] == now["end"] for name in NAMES))
        end, topic = run.figures["end"], run.name_of("readings")
        assert Broker(settings).offsets(topic)[0] == (0, end)
        run.until(lambda _: committed(settings, run) == dict.fromkeys(NAMES, end))
        assert {each["kind"] for each in run.events} == {"read", "live"}
    assert not Broker(settings).exists(topic)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_replay_disturbs_nobody(settings):
    with tried(EXPERIMENT, settings, events=200_000, rate=300, medium=20_000) as run:
        run.until(lambda now: now["fast_lag"] < 300 and now["p99_alone"], 120)
        run.press("end")
        run.until(lambda now: now["slow"] > 200_000)
        run.change(replay_speed=40_000)
        run.press("beginning")
        back = run.until(lambda now: now["is_replaying"] and now["slow"] < 100_000)
        assert back["fast"] > 200_000
        done = run.until(lambda now: not now["is_replaying"] and now["p99_replay"], 120)
        assert done["slow"] >= 200_000
        assert done["fast_lag"] < 3_000
        assert done["p50_replay"] < 500
        run.change(rate=0)
        end = run.until(lambda now: now["fast"] == now["medium"] == now["end"], 60)["end"]
        assert Broker(settings).offsets(run.name_of("readings"))[0] == (0, end)
        wanted = {"fast": end, "medium": end}
        run.until(lambda _: committed(settings, run) | wanted == committed(settings, run), 30)
