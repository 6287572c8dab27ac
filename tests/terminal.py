"""A page as its reader follows it: files are saved, commands are typed into one shell, in order."""

import re
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.walked_page import commands

_SAVE = re.compile(r"^(Save this as|Add this to the end of) `([^`]+)`")
_UNITS = "ms|s|min|h|seconds?|minutes?|hours?|B|kB|KB|MB|GB|TB"
_VARIES = re.compile(  # ids, times and figures, folders, hosts, what chance has chosen, and what is none
    rf"[a-z0-9]{{8}}-[a-z0-9-]{{27}}|[-≤]?\d[\d,.:TZ+-]*(?: (?:{_UNITS})\b)?|–"
    r"|(?<= )/[\w./-]+|[\w.-]+(?=/\d+ said)|customer-|\b(?:bread|cheese|lamp|chair|novel)\b"
    r"|(?<= )(?:ok|warning|stalled|stopped|unknown)(?=  )"  # how a group's lag is judged
)
_MINUTES = re.compile(r" \(\d+:\d\d:\d\d\)")  # which pytest adds to what took longer than one


@dataclass(frozen=True)
class Saved:
    """A file that the reader is to write, or to add to."""

    name: str
    text: str
    added: bool


@dataclass(frozen=True)
class Typed:
    """A command, and what the page shows below it."""

    command: str
    shown: str


def steps(page: str) -> Iterator[Saved | Typed]:
    """What a page tells its reader to do, from top to bottom."""
    paragraph, lines = "", iter(page.splitlines())
    for line in lines:
        if not line.startswith("```"):
            paragraph = line if line.strip() else paragraph
            continue
        block = "".join(f"{each}\n" for each in iter(lambda: next(lines), "```"))
        save = _SAVE.match(paragraph)
        if line == "```console":
            yield from (Typed(command, shown) for command, shown in commands(block))
        elif save:
            yield Saved(save[2], block, added=save[1].startswith("Add"))
        paragraph = ""


def differing(shown: str, printed: str) -> list[str]:
    """Lines of the page that were not printed, in their order, whatever numbers and names are in them."""
    rest = iter([_shape(line) for line in printed.splitlines()])
    wanted = [line for line in shown.splitlines() if line.strip() not in ("", "…")]
    return [line for line in wanted if _shape(line) not in rest]


def _shape(line: str) -> str:
    return " ".join(_VARIES.sub("#", _MINUTES.sub("", line)).split())


class Terminal:
    """A shell with job control in a folder; what runs in it is ended with it."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self.folder, self._environment = folder, environment
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.type("set -m")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in [*psutil.Process(self._shell.pid).children(recursive=True), self._shell]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._shell.wait()
        down = ["bash", "-c", "penstock down"]
        subprocess.run(down, cwd=self.folder, env=self._environment, capture_output=True, check=False)

    def follow(self, step: Saved | Typed) -> str:
        """Do what a step says; return what was printed."""
        if isinstance(step, Typed):
            return self.type(step.command)
        with (self.folder / step.name).open("a" if step.added else "w") as file:
            file.write(f"\n\n{step.text}" if step.added else step.text)
        return ""

    def type(self, command: str) -> str:
        """Type a command and return what it prints; what is not 0 of its exit code is printed, too."""
        shell, mark = self._shell, f"done-{time.monotonic_ns()}"
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(f"{{ {command}\n}} </dev/null\necho {mark} $?\n")
        shell.stdin.flush()
        printed = ""
        for line in shell.stdout:
            before, found, code = line.partition(mark)
            printed += before
            if found:
                return printed + ("" if code.strip() == "0" else f"(exit code {code.strip()})\n")
        raise AssertionError(f"the shell ended at {command!r}: {printed}")

    def serve(self, command: str, within: float = 60) -> str:
        """Start a server as a job, wait for the address that it says, ask there, and interrupt it."""
        self.type(f": > server.log; {command} > server.log 2>&1 &")
        deadline = time.monotonic() + within
        while not (found := re.search(r"http://\S+", (self.folder / "server.log").read_text())):
            assert time.monotonic() < deadline, (self.folder / "server.log").read_text()
            time.sleep(0.5)
        address = found[0].rstrip(";")
        with urllib.request.urlopen(address, timeout=within) as answer:
            assert answer.status == 200
        self.type("kill -INT %%; wait %%")
        return (self.folder / "server.log").read_text()
