"""The jars of the local services: listed in jars.toml, kept in the user's cache, checked before use."""

import hashlib
import os
import shutil
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import SetupError
from penstock.local import ivy
from penstock.local.lock import held

MANIFEST = Path(__file__).with_name("jars.toml")
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Jar(ivy.Coordinates):
    """One jar and the SHA-256 sum it must have."""

    sha256: str

    @property
    def file(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def manifest(path: Path = MANIFEST) -> Mapping[str, tuple[Jar, ...]]:
    """Return every set of jars by its name.

    >>> sorted({jar.version for jar in manifest()["kafka"] if jar.group == "org.apache.kafka"})
    ['4.3.1']
    """
    written = tomllib.loads(path.read_text())
    return {name: tuple(Jar(**entry) for entry in entries) for name, entries in written.items()}


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the user's cache: $PENSTOCK_CACHE, $XDG_CACHE_HOME/penstock or ~/.cache/penstock."""
    environ = os.environ if environ is None else environ
    if chosen := environ.get("PENSTOCK_CACHE"):
        return Path(chosen).absolute()
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "penstock"


def class_path(set_name: str, cache: Path | None = None) -> str:
    """Return the class path of a set, after making sure that its jars are there and whole."""
    jars = manifest()[set_name]
    folder = ensure(jars, cache)
    return os.pathsep.join(str(folder / jar.file) for jar in jars)


def is_here(set_name: str, cache: Path | None = None) -> bool:
    """Say whether every jar of a set was fetched before, without a look into them."""
    folder = (cache_folder() if cache is None else cache) / "jars"
    return all((folder / jar.file).exists() for jar in manifest()[set_name])


def ensure(jars: Sequence[Jar], cache: Path | None = None, progress: Progress = lambda *_: None) -> Path:
    """Fetch what is missing or damaged among `jars` and return the folder that holds them."""
    cache = cache_folder() if cache is None else cache
    folder = cache / "jars"
    if not unsound(jars, folder):
        return folder
    with held(cache / "jars.lock"):
        _fetch(unsound(jars, folder), cache, progress)
    return folder


def unsound(jars: Sequence[Jar], folder: Path) -> list[Jar]:
    """Return the jars that are missing in `folder` or not what the manifest says."""
    return [jar for jar in jars if _sum(folder / jar.file) != jar.sha256]


def _fetch(jars: Sequence[Jar], cache: Path, progress: Progress) -> None:
    if not jars:
        return
    arrivals, work = cache / "arrivals", cache / "ivy"
    shutil.rmtree(arrivals, ignore_errors=True)
    ivy.fetch(jars, arrivals, work, lambda arrived: progress(arrived, len(jars)))
    try:
        for jar in jars:
            _accept(jar, arrivals, cache / "jars")
    finally:
        ivy.forget(work)
        shutil.rmtree(arrivals, ignore_errors=True)


def _accept(jar: Jar, arrivals: Path, folder: Path) -> None:
    seen = _sum(arrivals / jar.file)
    if seen != jar.sha256:
        raise SetupError(
            f"{jar.file} was fetched with SHA-256 {seen or '(nothing)'}, {jar.sha256} expected",
            hint="run `make setup` again; if it stays, the repository serves a different file: don't use it",
        )
    folder.mkdir(parents=True, exist_ok=True)
    (arrivals / jar.file).replace(folder / jar.file)


def _sum(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None
