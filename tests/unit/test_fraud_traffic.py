"""Traffic with labels: what a plain reading of the rules finds is what was labelled."""

from datetime import UTC, datetime, timedelta

from penstock.apps.fraud.blocking import Blocking
from penstock.apps.fraud.events import Alert, Model
from penstock.apps.fraud.expected import Judge
from penstock.apps.fraud.traffic import REASONS, Traffic

START = datetime(2026, 1, 1, tzinfo=UTC)
MODEL = Model("m", -12.0, {"ratio": 2.8, "far": 1.2}, START)


def test_rules_find_exactly_what_is_labelled_and_the_model_most_of_it():
    traffic = Traffic(honest=2_000, scenarios=400)
    profiles = {profile.card: profile for profile in traffic.profiles()}
    acts = [traffic.next(START + timedelta(milliseconds=10 * number)) for number in range(30_000)]
    found = Judge(profiles, MODEL).alerts(acts)
    assert found.keys() ^ traffic.labels == {id for id in traffic.labels - found.keys() if "model" in id}
    for reason in REASONS:
        labelled = {id for id in traffic.labels if id.endswith(reason)}
        assert len(labelled) > 20
        assert len(labelled & found.keys()) > 0.8 * len(labelled)


def test_what_comes_after_a_cards_first_alert_may_be_refused_and_nothing_else():
    traffic = Traffic(honest=200, scenarios=70)
    profiles = {profile.card: profile for profile in traffic.profiles()}
    acts = [traffic.next(START + timedelta(milliseconds=10 * number)) for number in range(5_000)]
    judge = Judge(profiles, MODEL)
    alerts = judge.alerts(acts)
    first = {}
    for number, act in enumerate(acts):
        if any(f"{act.id}/{reason}" in alerts for reason in REASONS):
            first.setdefault(act.card, number)
    later = {
        act.id
        for number, act in enumerate(acts)
        if number > first.get(act.card, len(acts)) and act.kind != "login_failed"
    }
    assert judge.later.keys() == later
    assert len(later) > 10
    one, *others = judge.later
    honest = next(act.id for act in acts if act.card not in first)
    refusals = [
        Alert("c", "u", "blocked", ["t/many"], START, id=f"{id}/blocked") for id in (one, one, honest)
    ]
    found = Blocking.of(refusals, judge)
    assert (found.refused, found.wrong, found.passed) == (1, 1, len(others))
    assert found.money_refused == judge.later[one].amount


def test_the_same_seed_gives_the_same_traffic():
    one, other = (Traffic(honest=50, scenarios=5, seed=3) for _ in range(2))
    assert [one.next(START) for _ in range(200)] == [other.next(START) for _ in range(200)]
    assert one.labels == other.labels
