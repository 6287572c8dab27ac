"""The commands that replace a flow: what they hold meanwhile, and what they say."""

import io
from contextlib import nullcontext
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from rich.console import Console

import penstock.pipeline
from penstock.cli import replace
from penstock.control.run_registry import RunRegistry
from penstock.errors import FlowError
from penstock.pipeline import Swapped, replay_progress, runner
from penstock.settings import Settings


@pytest.fixture(autouse=True)
def said(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(replace, "console", Console(file=out, width=100))
    return out


@pytest.fixture
def settings(tmp_path, monkeypatch):
    made = Settings(data=tmp_path)
    monkeypatch.setattr(replace, "_declared", lambda *_: (made, None))
    monkeypatch.setattr(replace, "_spark", lambda _: nullcontext())
    return made


@pytest.mark.parametrize("command", ["swap", "rollback"])
def test_nobody_starts_the_pipeline_or_its_shadow_meanwhile(settings, monkeypatch, command):
    seen = []

    def work(*_, **__):
        seen.extend(RunRegistry(settings).process(name) for name in ("shop", "shop.large.shadow"))
        with (
            pytest.raises(FlowError, match=f"'shop' is held by a {command}"),
            RunRegistry(settings).holding("shop"),
        ):
            pass
        return Swapped("large", True, {})

    monkeypatch.setattr(penstock.pipeline, command, work)
    getattr(replace, command)("shop", "large")
    assert [each is not None for each in seen] == [True, True]
    assert RunRegistry(settings).process("shop") is None


def test_a_pipeline_that_runs_is_not_swapped(settings, monkeypatch):
    with RunRegistry(settings).holding("shop"), pytest.raises(FlowError, match="run `penstock stop shop`"):
        replace.swap("shop", "large")


@pytest.mark.parametrize(("found", "text"), [(True, "gave the shadow of large up"), (False, "has no shadow")])
def test_a_shadow_is_given_up_without_running_another(settings, monkeypatch, said, found, text):
    monkeypatch.setattr(penstock.pipeline, "discard_shadow", lambda *_: found)
    monkeypatch.setattr(penstock.pipeline, "shadow", lambda *_: pytest.fail("it has begun"))
    replace.shadow("shop", "large", discard=True)
    assert text in said.getvalue()


def test_a_replay_counts_only_what_it_has_written(settings, monkeypatch, said):
    runs = {"large": SimpleNamespace(has_written=True), "small": SimpleNamespace(has_written=False)}
    done = MagicMock(runs=runs)
    done.wait.return_value = True
    monkeypatch.setattr(penstock.pipeline, "Runner", lambda *_, **__: done)
    monkeypatch.setattr(runner, "chosen", lambda *_: [])
    there = {"large": 30, "small": 12}
    monkeypatch.setattr(replay_progress, "ReplayProgress", lambda *_: SimpleNamespace(there=there))
    monkeypatch.setattr(replace, "ReplayScreen", lambda _: nullcontext())
    replace.replay("shop")
    assert said.getvalue().startswith("replayed 30 records")
    runs["large"].has_written = False
    replace.replay("shop")
    assert said.getvalue().count("replayed") == 1
