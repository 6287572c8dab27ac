"""The Java that runs the broker and Spark: 17 or newer, from JAVA_HOME, PATH or the usual folder."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import SetupError

OLDEST = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_HINT = "install one (Debian: apt-get install openjdk-17-jre-headless) or point JAVA_HOME at one"


@dataclass(frozen=True)
class Java:
    """A Java program and its major version."""

    program: Path
    version: int


def find(environ: Mapping[str, str] | None = None, jvms: Path = Path("/usr/lib/jvm")) -> Java:
    """Return the first Java that is new enough, or say which ones were seen."""
    seen: list[str] = []
    for program in _candidates(os.environ if environ is None else environ, jvms):
        version = _version_of(program)
        if version is not None and version >= OLDEST:
            return Java(program, version)
        seen.append(f"{program} is {'not a working Java' if version is None else f'Java {version}'}")
    found = ", ".join(dict.fromkeys(seen)) or "none was found"
    raise SetupError(f"Java {OLDEST} or newer is needed: {found}", hint=_HINT)


def parse_version(text: str) -> int | None:
    """Return the major version in what `java -version` printed.

    >>> parse_version('openjdk version "17.0.19" 2026-04-21')
    17
    >>> parse_version('java version "1.8.0_402"')
    8
    """
    found = _VERSION.search(text)
    return int(found[1]) if found else None


def _candidates(environ: Mapping[str, str], jvms: Path) -> Iterator[Path]:
    if home := environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if on_path := shutil.which("java", path=environ.get("PATH", os.defpath)):
        yield Path(on_path)
    yield from sorted(jvms.glob("*/bin/java"))


def _version_of(program: Path) -> int | None:
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, errors="replace", timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(answer.stderr + answer.stdout)
