from pathlib import Path

from penstock.local import files


def test_a_file_is_replaced_whole_and_private(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    files.write_whole(path, "one")
    files.write_whole(path, "two")
    assert path.read_text() == "two"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["file"]


def test_the_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"line {number}\n" for number in range(100_000)))
    assert files.last_lines(path, 2) == ["line 99998", "line 99999"]
    assert files.last_lines(path, 0) == []
    assert files.last_lines(tmp_path / "none", 5) == []


def test_a_log_that_has_grown_is_set_aside(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x" * 11)
    files.keep_below(path, 10)
    assert not path.exists()
    assert (tmp_path / "log.1").read_text() == "x" * 11
