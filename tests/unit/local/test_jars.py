import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from penstock.errors import SetupError
from penstock.local import ivy, jars

ONE = jars.Jar("org.example", "one", "1.0", hashlib.sha256(b"one").hexdigest())
TWO = jars.Jar("org.example", "two", "2.0", hashlib.sha256(b"two").hexdigest())


class Repository:
    """Stands in for Ivy: writes what it serves and remembers what it was asked for."""

    def __init__(self) -> None:
        self.serves = {"one-1.0.jar": b"one", "two-2.0.jar": b"two"}
        self.asked: list[str] = []

    def fetch(self, wanted: Sequence[jars.Jar], folder: Path, work: Path, progress: object) -> None:
        folder.mkdir(parents=True)
        work.mkdir(parents=True, exist_ok=True)
        for jar in wanted:
            self.asked.append(jar.file)
            (folder / jar.file).write_bytes(self.serves[jar.file])


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch) -> Repository:
    stand_in = Repository()
    monkeypatch.setattr(ivy, "fetch", stand_in.fetch)
    return stand_in


def test_every_jar_of_the_manifest_is_pinned_once() -> None:
    kafka = jars.manifest()["kafka"]
    assert len({jar.file for jar in kafka}) == len(kafka) == 46
    assert all(len(bytes.fromhex(jar.sha256)) == 32 for jar in kafka)


def test_nothing_of_ours_names_a_host() -> None:
    words = jars.MANIFEST.read_text() + Path(ivy.__file__).read_text()
    assert "://" not in words


def test_missing_jars_are_fetched_and_then_left_alone(tmp_path: Path, repository: Repository) -> None:
    folder = jars.ensure([ONE, TWO], tmp_path)
    assert (folder / "two-2.0.jar").read_bytes() == b"two"
    jars.ensure([ONE, TWO], tmp_path)
    assert repository.asked == ["one-1.0.jar", "two-2.0.jar"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["jars", "jars.lock"]


@pytest.mark.parametrize("damage", [b"", b"on", b"one more"])
def test_a_damaged_jar_alone_is_fetched_again(tmp_path: Path, repository: Repository, damage: bytes) -> None:
    folder = jars.ensure([ONE, TWO], tmp_path)
    (folder / "one-1.0.jar").write_bytes(damage)
    repository.asked.clear()
    jars.ensure([ONE, TWO], tmp_path)
    assert repository.asked == ["one-1.0.jar"]
    assert not jars.unsound([ONE, TWO], folder)


def test_a_wrong_sum_names_the_jar_and_both_sums(tmp_path: Path, repository: Repository) -> None:
    repository.serves["two-2.0.jar"] = b"tampered"
    with pytest.raises(SetupError) as caught:
        jars.ensure([ONE, TWO], tmp_path)
    for word in ("two-2.0.jar", TWO.sha256, hashlib.sha256(b"tampered").hexdigest()):
        assert word in str(caught.value)
    assert not (tmp_path / "jars" / "two-2.0.jar").exists()
    assert not (tmp_path / "ivy").exists()


def test_what_an_interrupted_fetch_left_is_not_taken(tmp_path: Path, repository: Repository) -> None:
    (tmp_path / "arrivals").mkdir()
    (tmp_path / "arrivals" / "one-1.0.jar").write_bytes(b"hal")
    jars.ensure([ONE], tmp_path)
    assert not jars.unsound([ONE], tmp_path / "jars")


def test_the_cache_folder_follows_the_environment() -> None:
    assert jars.cache_folder({"PENSTOCK_CACHE": "/a", "XDG_CACHE_HOME": "/b"}) == Path("/a")
    assert jars.cache_folder({"XDG_CACHE_HOME": "/b"}) == Path("/b/penstock")
    assert jars.cache_folder({}) == Path.home() / ".cache" / "penstock"


def test_the_real_class_path_is_whole_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ivy, "fetch", lambda *_: pytest.fail("the network was used"))
    found = jars.class_path("kafka").split(os.pathsep)
    assert len(found) == 46
    assert all(Path(path).is_file() for path in found)


def test_a_set_is_here_once_all_of_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "manifest", lambda: {"both": (ONE, TWO)})
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / ONE.file).touch()
    assert not jars.is_here("both", tmp_path)
    (tmp_path / "jars" / TWO.file).touch()
    assert jars.is_here("both", tmp_path)


def test_a_truncated_real_jar_is_noticed(tmp_path: Path) -> None:
    wanted = jars.manifest()["kafka"]
    for jar in wanted:
        (tmp_path / jar.file).symlink_to(jars.cache_folder() / "jars" / jar.file)
    victim = tmp_path / wanted[0].file
    content = victim.read_bytes()
    victim.unlink()  # it is a link into the user's cache
    victim.write_bytes(content[:-1])
    assert jars.unsound(wanted, tmp_path) == [wanted[0]]
