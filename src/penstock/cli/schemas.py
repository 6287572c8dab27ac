"""penstock schemas: what is registered, how versions differ, and whether a new one may follow."""

import difflib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from penstock.cli.output import Json, console, show
from penstock.errors import SettingsError
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.registry import Registry, SchemaRecord
    from penstock.schemas import SchemaKind

app = typer.Typer(help="Schemas: list, show, diff, check and register.", no_args_is_help=True)
File = Annotated[
    Path, typer.Argument(help="The schema: .avsc (Avro), .json (JSON Schema) or .proto (Protobuf).")
]
_KINDS = {".avsc": "AVRO", ".json": "JSON", ".proto": "PROTOBUF"}


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the subjects with their newest version, its id and the compatibility mode.

    Example: penstock schemas list
    """
    with _registry() as registry:
        rows = []
        for subject in registry.subjects():
            newest = registry.version(subject)
            rows.append(
                {
                    "subject": subject,
                    "versions": newest.version,
                    "id": newest.id,
                    "type": newest.kind.value,
                    "mode": registry.mode(subject).value,
                }
            )
    show(rows, ("subject", "versions", "id", "type", "mode"), as_json=as_json, empty="no schemas yet")


@app.command("show")
def show_(
    subject: str, version: Annotated[int | None, typer.Argument()] = None, as_json: Json = False
) -> None:
    """Show a subject's schema, the newest unless a version is named.

    Example: penstock schemas show orders-value 2
    """
    with _registry() as registry:
        record = registry.version(subject, version)
    if as_json:
        whole = {"subject": subject, "version": record.version, "id": record.id, "type": record.kind.value}
        typer.echo(json.dumps({**whole, "schema": record.text}, indent=2))
    else:
        described = f"version {record.version}, id {record.id}, {record.kind.value}"
        console.print(f"[bold]{escape(subject)}[/bold] {described}")
        typer.echo(_pretty(record))


@app.command()
def diff(subject: str, old: int, new: int) -> None:
    """Show how two versions of a subject differ.

    Example: penstock schemas diff orders-value 1 2
    """
    with _registry() as registry:
        before, after = (registry.version(subject, version) for version in (old, new))
    lines = difflib.unified_diff(
        _pretty(before).splitlines(),
        _pretty(after).splitlines(),
        f"version {old}",
        f"version {new}",
        lineterm="",
    )
    typer.echo("\n".join(lines))


@app.command()
def check(subject: str, file: File, as_json: Json = False) -> None:
    """Say whether a schema may follow those of a subject; exit code 78 if it may not.

    Example: penstock schemas check orders-value order.avsc
    """
    with _registry() as registry:
        problems = registry.check(subject, *_read(file))
        mode = registry.mode(subject)
    if as_json:
        typer.echo(
            json.dumps({"compatible": not problems, "problems": [vars(each) for each in problems]}, indent=2)
        )
    elif not problems:
        console.print(f"[green]compatible[/green] ({mode.value})")
    else:
        rows = [{"field": each.path, "rule": each.rule, "what": each.message} for each in problems]
        show(rows, ("field", "rule", "what"), as_json=False, empty="")
    if problems:
        raise typer.Exit(78)


@app.command("register")
def register_(subject: str, file: File, as_json: Json = False) -> None:
    """Register a schema under a subject.

    Example: penstock schemas register orders-value order.avsc
    """
    with _registry() as registry:
        record = registry.register(subject, *_read(file))
    if as_json:
        typer.echo(json.dumps({"subject": subject, "version": record.version, "id": record.id}))
    else:
        console.print(f"{subject} version {record.version}, id {record.id}", markup=False)


def _registry() -> "Registry":
    from penstock.registry import Registry

    return Registry(Settings.load())


def _read(file: Path) -> "tuple[SchemaKind, str]":
    from penstock.schemas import SchemaKind

    if file.suffix not in _KINDS:
        raise SettingsError(f"{file.name} is not a schema's file", hint=f"name it {', '.join(_KINDS)}")
    if not file.is_file():
        raise SettingsError(f"there is no file {str(file)!r}")
    return SchemaKind(_KINDS[file.suffix]), file.read_text()


def _pretty(record: "SchemaRecord") -> str:
    if record.kind.value == "PROTOBUF":
        return record.text
    return json.dumps(json.loads(record.text), indent=2)
