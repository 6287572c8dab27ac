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
