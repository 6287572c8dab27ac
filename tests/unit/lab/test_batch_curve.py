"""Loss against interval: what passes until a card is blocked, for each interval, from one log."""

from decimal import Decimal

from penstock.apps.fraud.thefts import Block, Thefts
from penstock.lab.experiments.batch.curve import Curve
from penstock.lab.experiments.batch.till import Till

PAID = {"a": [(float(second), Decimal(10)) for second in range(0, 100, 10)]}


def test_a_payment_passes_until_its_card_is_blocked():
    curve = Curve(PAID, {"a": 25.0})
    assert curve.loss(Block(0.0)) == (3, Decimal(30))
    assert curve.loss(Block(0.0, every=60)) == (7, Decimal(70))
    assert curve.loss(Block(15.0, every=60)) == (8, Decimal(80))


def test_a_card_that_nobody_found_is_never_blocked():
    assert Curve(PAID, {}).loss(Block(0.0)) == (10, Decimal(100))


def test_points_go_from_real_time_to_an_hour():
    points = Curve(PAID, {"a": 25.0}).points(0.0, 0.0)
    assert [each["label"] for each in points][::3] == ["real time", "15 s", "15 min"]
    assert [each["payments"] for each in points] == sorted(each["payments"] for each in points)


def test_a_till_counts_by_the_truth_of_the_traffic():
    thefts = Thefts(hours=0.1, rate=2, honest=20, stolen=3, over=100.0)
    log = thefts.transactions()
    till = Till(thefts, {"stream": {"card-00020"}, "batch": set()})
    for act in log:
        till.decide(act)
    stolen = [each for each in log if int(each.card[-5:]) >= 20]
    refused = [each for each in stolen if each.card == "card-00020"]
    stream, batch = (till.tallies[name].figures(name) for name in ("stream", "batch"))
    assert till.fraudulent == len(stolen) == batch["batch_passed"]
    assert stream["stream_refused"] == len(refused) > 6
    assert stream["stream_saved"] == float(sum(each.amount for each in refused))
    assert stream["stream_honest"] == batch["batch_honest"] == 0


def test_a_theft_ends_when_its_owner_notices():
    thefts = Thefts(hours=1, rate=1, honest=10, stolen=5, over=600.0, lasts=300.0)
    for number in range(10, 15):
        times = [each.at for each in thefts.transactions() if each.card == f"card-{number:05d}"]
        assert (max(times) - min(times)).total_seconds() < 300
