import os
from pathlib import Path

import pytest

from penstock.errors import SetupError
from penstock.local import unprivileged
from penstock.local.unprivileged import Disguise, disguise


def test_ordinary_users_need_no_disguise() -> None:
    assert disguise(["false"], root=False) is None


def test_the_second_way_is_taken_when_the_first_is_forbidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unprivileged, "_namespace", lambda _: Disguise(("false",)))
    monkeypatch.setattr(unprivileged, "_other_user", lambda _: Disguise(("env",), 7))
    assert disguise(["true"], root=True) == Disguise(("env",), 7)


def test_where_nothing_works_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for way in ("_namespace", "_other_user"):
        monkeypatch.setattr(unprivileged, way, lambda _: Disguise(("no-such-program",)))
    with pytest.raises(SetupError, match=r"postgres refuses to run as root.*run penstock as an"):
        disguise(["/some/bin/postgres", "--version"], root=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_are_handed_over(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("")
    unprivileged.hand_over(tmp_path / "a", 1)
    assert (tmp_path / "a").stat().st_uid == (tmp_path / "a" / "b").stat().st_uid == 1


def test_programs_below_a_closed_folder_are_copied_to_an_open_one(tmp_path: Path) -> None:
    closed, copies = tmp_path / "closed", tmp_path / "copies"
    (closed / "pg" / "bin").mkdir(parents=True)
    program = closed / "pg" / "bin" / "postgres"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    closed.chmod(0o700)
    copies.mkdir()
    copy = unprivileged.open_to_all(closed, ["pg"], copies)
    assert copy.parent == copies
    assert (copy / "pg" / "bin" / "postgres").stat().st_mode & 0o777 == 0o755
    assert copy.stat().st_mode & 0o055 == 0o055
    assert unprivileged.open_to_all(closed, ["pg"], copies) == copy
    copy.chmod(0o777)
    with pytest.raises(SetupError, match="made by somebody else"):
        unprivileged.open_to_all(closed, ["pg"], copies)


def test_open_programs_stay_where_they_are() -> None:
    assert unprivileged.open_to_all(Path("/usr/bin"), []) == Path("/usr/bin")
