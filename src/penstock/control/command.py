"""A command of the command line that runs in the background, and what is known of it."""

from dataclasses import dataclass
from typing import Literal

State = Literal["running", "done", "differs", "stopped", "failed"]
DIFFERS = 65  # the exit code of a comparison that has found more than is allowed
_MOST = 60  # letters of a word that are shown without quotes


@dataclass(frozen=True)
class Command:
    """What is run: the words behind `penstock`, for which action, and what no two commands may be at.

    `seconds` bounds how long it may take; one without runs until it ends. `prints_document` says that its
    output is JSON, and `may_be_stopped` that ending it early leaves nothing half done.
    """

    name: str
    subject: str
    words: tuple[str, ...]
    claims: tuple[str, ...] = ()
    seconds: float | None = None
    prints_document: bool = False
    may_be_stopped: bool = True

    @property
    def line(self) -> str:
        """How a person would type it."""
        return " ".join(["penstock", *(_quoted(each) for each in self.words)])


@dataclass(frozen=True)
class CommandRun:
    """A command that was started; `error` is what it ended with, and `hint` what to do about that."""

    id: str
    command: Command
    user: str
    began: float
    state: State
    ended: float | None = None
    code: int | None = None
    error: str = ""
    hint: str = ""
    progress: str = ""  # the last line that it has written, while it runs

    @property
    def is_running(self) -> bool:
        return self.state == "running"


def _quoted(word: str) -> str:
    plain = word.replace("-", "").replace("_", "").replace(".", "").replace("/", "").replace("=", "")
    return word if plain.isalnum() else f"'{word[:_MOST]}'"
