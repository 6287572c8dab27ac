import os
import signal
import threading
import time
from pathlib import Path

import pytest

from penstock import local
from penstock.errors import SettingsError
from penstock.local import Platform, running, service
from penstock.local.postgres import Postgres


def test_a_folder_of_somebody_else_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "thesis.txt").write_text("precious")
    for fresh in (True, False):
        with pytest.raises(SettingsError, match="is not empty and was not made by penstock"):
            Platform(tmp_path).up(fresh=fresh)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kafka", "thesis.txt"]


def test_a_file_in_the_folders_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="was not made by penstock"):
        Platform(tmp_path / "file").up()


def test_down_and_status_of_a_folder_that_never_was(tmp_path: Path) -> None:
    platform = Platform(tmp_path / "none")
    platform.down()
    assert [one.state for one in platform.status()] == ["stopped", "stopped"]
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("services", [(), ("kafka", "oracle")])
def test_unknown_services_are_refused(tmp_path: Path, services: tuple[str, ...]) -> None:
    with pytest.raises(SettingsError, match="known are kafka, postgres"):
        Platform(tmp_path, services=services)


def test_a_record_of_a_dead_process_is_a_crash(tmp_path: Path) -> None:
    (tmp_path / "kafka").mkdir()
    (tmp_path / "kafka" / "process.json").write_text('{"pid": 1, "create_time": 1, "command": ["x"]}')
    assert Platform(tmp_path).status()[0].state == "crashed"


def test_interrupted_while_a_service_starts_it_is_stopped_once_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def start(*_: object) -> int:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        time.sleep(0.5)
        done.append("started")
        return 1

    monkeypatch.setattr(service, "start", start)
    monkeypatch.setattr(service, "stop", lambda *_: done.append("stopped"))
    with pytest.raises(KeyboardInterrupt), running(tmp_path / "data", services=("kafka",)):
        done.append("used")
    assert done == ["started", "stopped"]


@pytest.mark.parametrize(
    ("services", "said"), [(("kafka",), ["fetching the broker's jars (once)"]), (("postgres",), [])]
)
def test_the_first_start_of_a_broker_says_that_its_jars_are_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, services: tuple[str, ...], said: list[str]
) -> None:
    monkeypatch.setattr(service, "start", lambda *_: 1)
    monkeypatch.setattr(Postgres, "endpoint", lambda *_: {})
    reports: list[str] = []
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "empty"))
    Platform(tmp_path / "data", services=services).up(report=reports.append)
    assert reports == said
    monkeypatch.delenv("PENSTOCK_CACHE")
    reports.clear()
    Platform(tmp_path / "data", services=services).up(report=reports.append)
    assert reports == []


def test_the_public_names_are_those_that_are_listed() -> None:
    assert all(hasattr(local, name) for name in local.__all__)
