"""Who starts services stops them, but only those, and only if nobody else uses them."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from penstock.lab import services as module
from penstock.lab.manifest import folder_of
from penstock.lab.services import services
from penstock.lab.users import Users
from penstock.settings import Settings

BOTH = ("kafka", "postgres")


@dataclass(frozen=True)
class State:
    state: str


@dataclass(frozen=True)
class Platform:
    """A platform that only remembers what runs."""

    data: Path
    services: tuple[str, ...] = BOTH
    up_now: set[str] = field(default_factory=set)

    def status(self):
        return [State("running" if each in self.up_now else "stopped") for each in self.services]

    def up(self, report=print):
        self.up_now.update(self.services)

    def down(self, report=print):
        self.up_now.difference_update(self.services)


@pytest.fixture
def up_now(monkeypatch, tmp_path):
    """The services that run."""
    found = set()
    monkeypatch.setattr(module, "Platform", lambda data, services: Platform(data, services, found))
    monkeypatch.chdir(tmp_path)
    return found


def test_only_what_was_begun_is_stopped(up_now, tmp_path):
    up_now.add("postgres")
    said = []
    with services(Settings(data=tmp_path), said.append):
        assert up_now == set(BOTH)
    assert up_now == {"postgres"}
    assert said == [f"no broker is running: starting a Kafka in {tmp_path}"]


def test_a_lab_that_came_later_keeps_its_services(up_now, tmp_path):
    settings, said = Settings(data=tmp_path), []
    second = services(settings, said.append)
    with services(settings, said.append):
        second.__enter__()
    assert up_now == set(BOTH)
    assert said[-1] == "kafka and postgres go on, because another lab uses them: `penstock down` stops them"
    second.__exit__(None, None, None)
    assert up_now == set(BOTH)  # the second one has begun nothing


def test_a_pipeline_keeps_its_services(up_now, tmp_path):
    settings, said = Settings(data=tmp_path), []
    with module.RunRegistry(settings).holding("shop"), services(settings, said.append):
        pass
    assert up_now == set(BOTH)
    assert "because pipeline shop uses them" in said[-1]


def test_what_was_stopped_before_the_folder_was_held_is_started_again(up_now, tmp_path, monkeypatch):
    up_now.update(BOTH)
    join = Users.join

    def joined(self):
        join(self)
        up_now.clear()  # by the lab that had begun them, a moment ago

    monkeypatch.setattr(Users, "join", joined)
    with services(Settings(data=tmp_path), print):
        assert up_now == set(BOTH)
    assert up_now == set()


def test_the_last_one_is_told_from_the_others(tmp_path):
    path = folder_of(Settings(data=tmp_path)) / "users"
    with Users(path) as first:
        first.join()
        with Users(path) as second:
            second.join()
            assert not first.is_last()
        assert first.is_last()
