"""Forgetting a flow: no generation of it is heard of any more."""

from dataclasses import replace
from types import SimpleNamespace

from penstock.identity import Identity
from penstock.pipeline import forgetting
from penstock.pipeline.generation import Generation
from penstock.settings import Settings

SWAPPED = replace(Generation().begun("", "v2", shadow=True), building=7).swapped(kept=True)


def test_the_last_word_of_all_generations_is_forgotten(monkeypatch):
    known = replace(SWAPPED.begun("", "v3", shadow=True), building=9)
    generations = SimpleNamespace(read=lambda: known, of=lambda number: Identity("shop.large", number))
    monkeypatch.setattr(forgetting, "Generations", lambda *_: generations)
    monkeypatch.setattr(forgetting, "Broker", lambda _: SimpleNamespace(topics=lambda _: []))
    monkeypatch.setattr(forgetting, "Groups", lambda _: SimpleNamespace(delete=lambda _: True))
    monkeypatch.setattr(
        forgetting, "Checkpoint", lambda *_: SimpleNamespace(delete=lambda: True, path="flows/shop/large")
    )
    forgotten = set()
    monkeypatch.setattr(forgetting, "forget_status", lambda _, each: forgotten.add(each.generation))
    forgetting.forget(None, Settings(), "shop", "large")
    assert forgotten == {0, 7, 9}
