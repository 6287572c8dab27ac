from pathlib import Path

import pytest

from penstock.errors import SetupError
from penstock.local import java


def fake(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.19" 2026-04-21', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "25" 2025-09-16', 25),
        ('openjdk version "21-ea"', 21),
        ("Error: could not find libjava.so", None),
    ],
)
def test_versions_are_read(text: str, version: int | None) -> None:
    assert java.parse_version(text) == version


def test_java_home_comes_first(tmp_path: Path) -> None:
    home = fake(tmp_path / "home", "21.0.1")
    path = fake(tmp_path / "path", "17.0.1")
    environ = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)}
    assert java.find(environ, tmp_path / "none") == java.Java(home, 21)


def test_an_old_java_is_passed_over_for_a_newer_one(tmp_path: Path) -> None:
    old = fake(tmp_path / "old", "11.0.2")
    new = fake(tmp_path / "jvms" / "java-17", "17.0.2")
    assert java.find({"PATH": str(old.parent)}, tmp_path / "jvms").program == new


def test_only_an_old_java_names_it_and_says_what_to_do(tmp_path: Path) -> None:
    old = fake(tmp_path / "old", "11.0.2")
    with pytest.raises(
        SetupError, match=r"Java 17 or newer is needed: .* is Java 11.*openjdk-17-jre"
    ) as caught:
        java.find({"PATH": str(old.parent)}, tmp_path / "none")
    assert caught.value.exit_code == 78


def test_no_java_at_all(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="none was found"):
        java.find({"PATH": str(tmp_path)}, tmp_path / "none")


def test_a_broken_java_home_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="not a working Java"):
        java.find({"JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}, tmp_path / "none")
