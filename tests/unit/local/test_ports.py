import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.errors import SettingsError
from penstock.local import ports


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as server:
        server.bind((ports.LOOPBACK, 0))
        server.listen()
        yield server.getsockname()[1]


def test_a_demanded_port_that_is_taken_is_an_error(taken: int) -> None:
    with pytest.raises(SettingsError, match=f"port {taken} for kafka is taken"):
        ports.choose("kafka", taken, ())


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_a_demanded_port_must_be_one(port: int) -> None:
    with pytest.raises(SettingsError, match=f"port {port} for kafka is not between"):
        ports.choose("kafka", port, ())


def test_the_usual_port_is_passed_over_when_it_is_taken(taken: int) -> None:
    chosen = ports.choose("kafka", None, (None, taken))
    assert chosen != taken
    assert ports.is_free(chosen)


def test_the_first_preferred_free_port_is_taken(taken: int) -> None:
    free = ports.any_free()
    assert ports.choose("kafka", None, (taken, free, 9092)) == free


def test_a_port_in_use_is_open_and_not_free(taken: int) -> None:
    assert ports.is_open(taken)
    assert not ports.is_free(taken)


@pytest.mark.parametrize(("text", "port"), [("9092", 9092), ("", None), ("x", None)])
def test_a_remembered_port(tmp_path: Path, text: str, port: int | None) -> None:
    (tmp_path / "port").write_text(text)
    assert ports.remembered(tmp_path / "port") == port
    assert ports.remembered(tmp_path / "none") is None
