"""penstock groups: who reads what, how far behind, and setting them to another place."""

import json
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from penstock.cli.output import Json, console, show
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.log import Groups, Position

app = typer.Typer(help="Consumer groups: members, lag and positions.", no_args_is_help=True)


@app.command("list")
def list_(as_json: Json = False) -> None:
    """List the consumer groups.

    Example: penstock groups list
    """
    rows = [{"group": each.group, "state": each.state} for each in _groups().all()]
    show(
        rows, ("group", "state"), as_json=as_json, empty="no groups yet: one appears when a consumer joins it"
    )


@app.command()
def describe(group: str, as_json: Json = False) -> None:
    """Show a group's members and the partitions each of them reads.

    Example: penstock groups describe billing
    """
    state = _groups().describe(group)
    rows = [
        {
            "member": member.static_id or member.id,
            "host": member.host,
            "partitions": " ".join(f"{topic}[{number}]" for topic, number in member.partitions),
        }
        for member in state.members
    ]
    if as_json:
        typer.echo(json.dumps({"group": group, "state": state.state, "members": rows}, indent=2))
        return
    console.print(f"[bold]{escape(group)}[/bold]: {state.state}")
    show(rows, ("member", "host", "partitions"), as_json=False, empty="no members")


@app.command()
def lag(group: str, as_json: Json = False) -> None:
    """Show how far a group is behind, in events and in seconds (the age of its oldest unread event).

    Example: penstock groups lag billing
    """
    groups = _groups()
    found = groups.lag(group)
    if not found:
        groups.describe(group)  # or say that there is none
    rows = [
        {
            "topic": each.topic,
            "partition": each.partition,
            "position": each.position,
            "end": each.end,
            "events": each.events,
            "seconds": round(each.seconds, 1),
        }
        for each in found
    ]
    columns = ("topic", "partition", "position", "end", "events", "seconds")
    show(rows, columns, as_json=as_json, empty=f"group {group} has no positions")


@app.command()
def reset(
    group: str,
    topic: str,
    to: Annotated[str, typer.Option(help="beginning, end, a time (2026-01-31T12:00:00Z) or 0=17,1=4")],
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it is only shown.")] = False,
    as_json: Json = False,
) -> None:
    """Move a group to another place in a topic; shows what would happen unless --yes is given.

    Example: penstock groups reset billing orders --to beginning --yes
    """
    moves = _groups().reset(group, topic, _position(to), dry_run=not yes)
    show(moves, ("partition", "before", "after"), as_json=as_json, empty="no partitions")
    if not yes and not as_json:
        console.print("nothing was changed: add --yes to do it")


def _groups() -> "Groups":
    from penstock.log import Groups

    return Groups(Settings.load())


def _position(text: str) -> "Position":
    from penstock.control.group_reset import position

    return position(text)
