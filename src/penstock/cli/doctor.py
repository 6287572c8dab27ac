"""`penstock doctor`: what is wrong, why, and what to do; and the safe fixes, after a look at them."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.markup import escape

from penstock.cli.output import Json, console
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.ops.doctor.declared import Declared
    from penstock.ops.doctor.finding import Finding

T = TypeVar("T")
SICK = 65  # the exit code when there are errors or warnings
_COLOURS = {"error": "red", "warning": "yellow", "info": "cyan"}
Module = Annotated[
    list[str] | None,
    typer.Option("--module", "-m", help="Where topics and pipelines are declared: more can be checked."),
]
Only = Annotated[list[str] | None, typer.Option("--only", help="Look for this finding only, by its id.")]
Wait = Annotated[str | None, typer.Option(help="Time between two looks, such as 10s; one look unless given.")]
Webhook = Annotated[
    str | None, typer.Option(help="Post the findings to this address, or to the connection of this name.")
]
Fixing = Annotated[bool, typer.Option("--fix", help="Offer the safe fixes.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="With --fix: show what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", help="With --fix: don't ask.")]


def register(app: typer.Typer) -> None:
    """Add the command of this file to the command line."""
    app.command()(doctor)


def doctor(
    module: Module = None,
    only: Only = None,
    wait: Wait = None,
    webhook: Webhook = None,
    fix: Fixing = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Look for what is wrong: lag, duplicates, late events, stuck watermarks, slow checkpoints and more.

    The exit code is 0 if nothing needs anybody, and 65 if there are errors or warnings.

    Example: penstock doctor -m shop.py
    """
    from penstock.durations import duration
    from penstock.ops.doctor.checks import chosen, diagnose
    from penstock.ops.doctor.probing import examine
    from penstock.ops.doctor.reporting import document, post

    settings = Settings.load()
    declared = declared_to_doctor(tuple(module or settings.modules))
    seconds = duration(wait).total_seconds() if wait else 0.0
    sampled = any(each.sampled for each in chosen(only or ()))
    system, probes = examine(settings, declared, seconds, sampled=sampled)
    findings = diagnose(system, probes, only or ())
    if as_json:
        typer.echo(json.dumps(document(system.at, findings), indent=2, ensure_ascii=False))
    else:
        show_findings(findings)
    if webhook is not None:
        post(settings, webhook, system.at, findings)
    if fix:
        _fix(findings, settings, declared, dry_run=dry_run, yes=yes, quiet=as_json)
    if any(each.is_trouble for each in findings):
        raise typer.Exit(SICK)


def show_findings(findings: "Sequence[Finding]") -> None:
    """Print findings, the worst first, each with its numbers, its cause and what to do."""
    for each in findings:
        colour = _COLOURS[each.severity]
        _line(f"[{colour}]{each.severity}[/{colour}] [bold]{each.id}[/bold] {escape(each.subject)}")
        _line(f"  {escape(each.summary)}")
        numbers = ", ".join(f"{name}={value}" for name, value in each.evidence.items())
        if numbers:
            _line(f"  [dim]{escape(numbers)}[/dim]")
        _line(f"  why: {escape(each.cause)}")
        _line(f"  [cyan]→[/cyan] {escape(each.hint)}")
        if each.fix is not None:
            _line(f"  [cyan]→[/cyan] --fix: {escape(each.fix.command)}")
    counts = {severity: sum(each.severity == severity for each in findings) for severity in _COLOURS}
    found = [
        f"{count} {name}{'s' * (count > 1 and name != 'info')}" for name, count in counts.items() if count
    ]
    _line(", ".join(found) if found else "nothing is wrong")


def _line(text: str) -> None:
    console.print(text, highlight=False, soft_wrap=True)


def declared_to_doctor(modules: tuple[str, ...]) -> "Declared":
    """Return the topics and pipelines of modules, as the doctor looks at them."""
    from penstock.cli.modules import loaded_modules
    from penstock.log import Topic
    from penstock.ops.doctor.declared import Declared
    from penstock.pipeline import Pipeline

    values = [
        each for module in (loaded_modules(modules) if modules else ()) for each in vars(module).values()
    ]
    return Declared(_of_kind(values, Topic), _of_kind(values, Pipeline))


def _of_kind(values: list[Any], kind: type[T]) -> tuple[T, ...]:
    found = {each.name: each for each in values if isinstance(each, kind)}  # type: ignore[attr-defined]
    return tuple(found.values())


def _fix(
    findings: "Sequence[Finding]",
    settings: Settings,
    declared: "Declared",
    *,
    dry_run: bool,
    yes: bool,
    quiet: bool,
) -> None:
    """Show each safe fix, ask, see whether it is still one, carry it out, and write it down."""
    from penstock.ops.doctor.checks import diagnose
    from penstock.ops.doctor.fixing import AUDIT, carry_out, offered
    from penstock.ops.doctor.probing import examine

    ids = {each.id for each in findings if each.fix is not None}
    fixes = [each.fix for each in findings if each.fix is not None]
    for each in fixes:
        if not quiet:
            _line(f"{'would run' if dry_run else 'fix'}: {escape(each.command)}")
        if not dry_run and (yes or typer.confirm("Do it?", default=False)):
            now = diagnose(*examine(settings, declared, sampled=False), ids)
            fix = offered(now, each.action, each.subject)
            outcome = carry_out(fix, settings, declared) if fix else "it is not offered any more"
            if not quiet:
                _line(f"  {outcome}" + (f"; written to {settings.data / AUDIT}" if fix else ""))
    if not fixes and not quiet:
        _line("no finding has a safe fix")
