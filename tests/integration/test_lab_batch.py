"""Batch against stream: what the tills counted is what stands in the log."""

import pytest
from tests.laboratory import tried
from tests.plain_reader import left_behind, plainly_read

from penstock.lab.experiments.batch.experiment import EXPERIMENT


def _in_order(events):
    return sorted(events, key=lambda each: int(each["id"].removeprefix("t")))


def _check(settings, run, honest):
    figures = run.figures
    log = _in_order(plainly_read(settings, run.name_of("transactions")))[: figures["transactions"]]
    assert [each["id"] for each in log] == [f"t{number}" for number in range(figures["transactions"])]
    fraud = [each for each in log if int(each["card"].removeprefix("card-")) >= honest]
    money = sum(float(each["amount"]) for each in fraud)
    assert len(fraud) == figures["fraudulent"]
    for judge in ("stream", "batch"):
        blocks = {each["card"]: each for each in plainly_read(settings, run.name_of(f"blocked.{judge}"))}
        late = [each for each in fraud if each["card"] in blocks and each["at"] > blocks[each["card"]]["at"]]
        assert figures[f"{judge}_passed"] + figures[f"{judge}_refused"] == len(fraud)
        assert figures[f"{judge}_refused"] <= len(late)
        assert figures[f"{judge}_money"] + figures[f"{judge}_saved"] == pytest.approx(money)
        assert figures[f"{judge}_honest"] == 0
        assert {int(card.removeprefix("card-")) >= honest for card in blocks} <= {True}
    return figures


def test_the_tills_count_what_is_in_the_log(settings):
    with tried(EXPERIMENT, settings, every="1 h") as run:
        run.until(lambda now: now["found"] >= 3 and now["stream_refused"] >= 3)
        figures = _check(settings, run, honest=150)
        assert figures["batch_refused"] == figures["batches"] == 0
        assert figures["stream_money"] < figures["batch_money"]
        run.change(every="15 s")
        run.until(lambda now: now["batches"] >= 3 and now["batch_refused"] >= 3)
        _check(settings, run, honest=150)
        assert {"fraud", "amount", "stream", "batch"} == run.events[0].keys()
        id = run.frame["run"]
    assert left_behind(settings, id) == []


@pytest.mark.long
def test_the_loss_grows_with_the_interval(settings):
    with tried(EXPERIMENT, settings, every="5 min") as run:
        figures = run.until(lambda now: now["batches"] >= 8, 90)
        _check(settings, run, honest=150)
        money = [each["money"] for each in figures["curve"]]
        assert [each["label"] for each in figures["curve"]][:2] == ["real time", "1 s"]
        assert money == sorted(money)
        of = {each["label"]: each["money"] for each in figures["curve"]}
        assert of["real time"] == pytest.approx(figures["stream_money"], rel=0.15)
        assert of["5 min"] == pytest.approx(figures["batch_money"], rel=0.15)
        assert figures["batch_money"] > 2 * figures["stream_money"]


def test_time_that_is_not_compressed(settings):
    with tried(EXPERIMENT, settings, every="1 s", speed="real time") as run:
        figures = run.until(lambda now: now["transactions"] >= 60)
        assert figures["speed"] == 1
        assert figures["traffic_seconds"] < 20
