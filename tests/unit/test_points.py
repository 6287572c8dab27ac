"""Crash points: heard by the harness, however many are passed at the same time."""

import threading
from concurrent.futures import ThreadPoolExecutor

from penstock import points
from penstock.testing.listener import PointListener


def test_without_a_harness_a_point_is_passed(monkeypatch):
    monkeypatch.delenv(points.VARIABLE, raising=False)
    points.reach("flow.planned", "shop.orders")


def test_a_harness_that_is_gone_is_not_waited_for(monkeypatch, tmp_path):
    monkeypatch.setenv(points.VARIABLE, str(tmp_path / "nobody"))
    points.reach("flow.planned", "shop.orders")


def test_every_point_is_heard_when_many_are_passed_together(monkeypatch):
    many = 300
    ready = threading.Barrier(many)

    def pass_one(number):
        ready.wait(30)
        points.reach("flow.planned", f"flow{number}")

    with PointListener(lambda point, subject: False) as listener, ThreadPoolExecutor(many) as threads:
        for name, value in listener.environment.items():
            monkeypatch.setenv(name, value)
        list(threads.map(pass_one, range(many)))
        assert sorted(listener.passed) == sorted(("flow.planned", f"flow{number}") for number in range(many))
