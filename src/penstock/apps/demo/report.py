"""What came of a demo, for people: the verdict, the figures, what to try next."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.console import Group, RenderableType
from rich.text import Text

from penstock.cli.output import rows

Figures = Sequence[tuple[str, str, str]]
"""The lines of a report: a name, a value, what it means."""


@dataclass(frozen=True)
class Report:
    """`claim` is what was shown, if there are no `problems`: what is not as the truth has it."""

    claim: str
    figures: Figures
    problems: Sequence[str] = ()

    @property
    def complete(self) -> bool:
        """Whether all is as it has to be."""
        return not self.problems

    def with_figures(self, *more: tuple[str, str, str]) -> "Report":
        """The same with more figures at its end."""
        return replace(self, figures=[*self.figures, *more])


def described(report: Report, next_: Iterable[tuple[str, str]]) -> RenderableType:
    """The whole of it, as it is printed at the end."""
    further = rows((what, "", why) for what, why in next_)
    return Group("", verdict(report), "", rows(report.figures), "", Text("Try next", "bold"), further)


def verdict(report: Report) -> Text:
    """Whether it did what it should, in one line."""
    if report.complete:
        return Text(f"✓ {report.claim}; nothing is left running", "bold green")
    return Text(f"✗ {'; '.join(report.problems)}", "bold red")
