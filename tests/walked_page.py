"""A page of the docs, read from top to bottom: its commands are run, its statements asked, as they stand."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from penstock.settings import Settings

DOCS = Path(__file__).parents[1] / "docs"
_AT_WORK = (
    "now every change",
    "records applied",
    "carrying out the transfers",
    "gateway on",
    "handles order events",
)
_BLOCK = re.compile(r"^```(console|sql)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass
class Walked:
    """What the commands of a page have printed, in order; beside it, what the page shows."""

    printed: list[tuple[str, str, str]] = field(default_factory=list)  # command, output, shown
    background: list[subprocess.Popen[str]] = field(default_factory=list)

    def output(self, part: str) -> str:
        """The output of the first command that has a text in it."""
        return next(output for command, output, _ in self.printed if part in command)


@contextmanager
def walked(page: str, folder: Path) -> Iterator[Walked]:
    """Walk through a page in a folder; its services are stopped at the end."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PENSTOCK_")}
    environment |= {"PATH": path, "COLUMNS": "120"}
    made = Walked()
    try:
        for kind, text in _BLOCK.findall((DOCS / page).read_text()):
            if kind == "sql":
                _ask(text, folder)
                continue
            for command, shown in commands(text):
                if command.endswith("&"):
                    made.background.append(_start(command.rstrip("& "), folder, environment))
                else:
                    made.printed.append((command, _run(command, folder, environment), shown))
        yield made
    finally:
        for process in made.background:
            process.kill()
        _run("penstock down", folder, environment)


def commands(text: str) -> list[tuple[str, str]]:
    """The commands of a block, each with the output that the page shows; a heredoc is part of its command."""
    lines, found = iter(text.splitlines()), list[tuple[str, str]]()
    for line in lines:
        if not line.startswith("$ "):
            command, shown = found.pop()
            found.append((command, f"{shown}{line}\n"))
            continue
        command = line[2:]
        if "<<'EOF'" in command:
            for more in lines:
                command += f"\n{more}"
                if more == "EOF":
                    break
        found.append((command, ""))
    return found


def _ask(text: str, folder: Path) -> None:
    with psycopg.connect(Settings.load(folder, {}).dsn().value, autocommit=True) as connection:
        connection.execute(text)


def _start(command: str, folder: Path, environment: dict[str, str]) -> "subprocess.Popen[str]":
    """Start a command behind the shell's back, and wait for the line that says that it is at work."""
    process = subprocess.Popen(
        ["bash", "-c", f"exec {command}"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    first = process.stdout.readline()
    assert any(words in first for words in _AT_WORK), first
    return process


def _run(command: str, folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout
