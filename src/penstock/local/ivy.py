"""Fetching jars with the Ivy that ships inside PySpark: no Maven, and no repository's address of ours."""

import os
import shutil
import subprocess
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from xml.sax.saxutils import quoteattr

from penstock.errors import ServiceError, SetupError
from penstock.local import java

SETTINGS_VARIABLE = "PENSTOCK_IVY_SETTINGS"
_COMPLAINTS = ("unresolved dependency", "[FAILED     ]", "UnknownHost", "Server access error")


@dataclass(frozen=True)
class Coordinates:
    """Where a jar is published."""

    group: str
    artifact: str
    version: str


def fetch(
    wanted: Sequence[Coordinates],
    folder: Path,
    work: Path,
    progress: Callable[[int], None] = lambda _: None,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Put exactly the wanted jars into `folder`; Ivy keeps everything of its own in `work`.

    What an interrupted fetch left in `work` is used by the next one. Set PENSTOCK_IVY_SETTINGS to
    an ivysettings.xml to fetch from a repository of your own.
    """
    work.mkdir(parents=True, exist_ok=True)
    description = work / "ivy.xml"
    description.write_text(_description(wanted))
    command = _command(description, folder, work, os.environ if environ is None else environ)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as ivy:
        complaints = _follow(ivy.stdout or (), progress)
    if ivy.returncode:
        raise ServiceError(
            f"{len(wanted)} jars could not be fetched: {complaints or f'Ivy ended with {ivy.returncode}'}",
            hint="check the network and run `make setup` again; what arrived is kept",
        )


def forget(work: Path) -> None:
    """Throw Ivy's own files away, so that nothing broken in them is used again."""
    shutil.rmtree(work, ignore_errors=True)


def _description(wanted: Sequence[Coordinates]) -> str:
    lines = [
        f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)}"
        ' transitive="false" conf="*->master"/>'
        for jar in wanted
    ]
    return (
        '<ivy-module version="2.0"><info organisation="penstock" module="jars"/>\n<dependencies>\n'
        + "\n".join(lines)
        # The sets have jars in common, in versions of their own: keep all of them.
        + '\n</dependencies><conflicts><manager name="all"/></conflicts></ivy-module>\n'
    )


def _command(description: Path, folder: Path, work: Path, environ: Mapping[str, str]) -> list[str]:
    settings = environ.get(SETTINGS_VARIABLE)
    return [
        str(java.find(environ).program),
        f"-Divy.default.ivy.user.dir={work}",
        f"-Divy.home={work}",
        "-Djava.net.useSystemProxies=true",
        *("-jar", str(_program())),
        *(("-settings", settings) if settings else ()),
        *("-ivy", str(description), "-cache", str(work / "cache")),
        *("-retrieve", f"{folder}/[artifact]-[revision].[ext]"),
    ]


def _program() -> Path:
    spec = find_spec("pyspark")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in folders:
        for found in sorted(Path(folder).glob("jars/ivy-*.jar")):
            return found
    raise SetupError(f"PySpark's Ivy was not found in {folders or 'any package'}", hint="run `make setup`")


def _follow(output: Iterable[str], progress: Callable[[int], None]) -> str:
    """Report each jar that arrives and return the last lines that say what is wrong."""
    arrived = 0
    complaints: deque[str] = deque(maxlen=3)
    for line in output:
        if "[SUCCESSFUL ]" in line:
            arrived += 1
            progress(arrived)
        elif any(word in line for word in _COMPLAINTS):
            complaints.append(line.strip())
    return "; ".join(complaints)
