from pathlib import Path

import pytest

from penstock.errors import ServiceError
from penstock.local import ivy, java

WANTED = [ivy.Coordinates("org.example", "a&b", "1.0")]


def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a shell script in Java's place; it is given Ivy's arguments."""
    program = tmp_path / "java"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\n{script}\n')
    program.chmod(0o755)
    monkeypatch.setattr(java, "find", lambda _: java.Java(program, 17))


def test_nothing_is_resolved_beyond_the_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "echo '[SUCCESSFUL ] a'")
    counted: list[int] = []
    ivy.fetch(WANTED, tmp_path / "out", tmp_path / "work", counted.append)
    description = (tmp_path / "work" / "ivy.xml").read_text()
    assert 'name="a&amp;b" rev="1.0" transitive="false"' in description
    assert counted == [1]


def test_ivy_keeps_to_the_given_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "true")
    ivy.fetch(
        WANTED, tmp_path / "out", tmp_path / "work", environ={ivy.SETTINGS_VARIABLE: "/my/settings.xml"}
    )
    arguments = (tmp_path / "arguments").read_text()
    assert f"-Divy.default.ivy.user.dir={tmp_path}/work" in arguments
    assert f"-cache {tmp_path}/work/cache" in arguments
    assert "-settings /my/settings.xml" in arguments


def test_a_failure_repeats_what_ivy_complained_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "echo ':: unresolved dependency: org.example#b;1.0: not found'; exit 1")
    with pytest.raises(ServiceError, match=r"1 jars could not be fetched: .*not found.*make setup"):
        ivy.fetch(WANTED, tmp_path / "out", tmp_path / "work")
