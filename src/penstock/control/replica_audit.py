"""Compares a replica with its source by checksums, while both go on, and has what differs captured again."""

from dataclasses import dataclass

from penstock.control.action import Outcome
from penstock.control.background import BackgroundAction
from penstock.control.command import Command
from penstock.replica.status import declared
from penstock.settings import Settings

_SECONDS = 12 * 3600.0


@dataclass(frozen=True)
class ReplicaAudit(BackgroundAction):
    """`connection` is the replica's database; with `repair`, what differs goes through the log again."""

    replica: str
    connection: str | None = None
    repair: bool = False

    @property
    def command(self) -> Command:
        options = (
            *([f"--to={self.connection}"] if self.connection else []),
            *(["--repair"] * self.repair),
            "--json",
        )
        return Command(
            "replica.audit",
            self.replica,
            ("replica", "audit", self.replica, *options),
            (f"replica {self.replica}",),
            seconds=_SECONDS,
            prints_document=True,
        )

    def check(self, settings: Settings) -> Outcome:
        found = declared(settings, self.replica, self.connection)
        then = "; what differs would be captured again" if self.repair else "; nothing is written"
        return Outcome(
            f"all rows of {found.capture} would be compared with its copy{then}: `{self.command.line}`"
        )
