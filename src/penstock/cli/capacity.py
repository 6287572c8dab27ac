"""`penstock plan`: what a load needs."""

import json
import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.output import Json, console, plain, rows
from penstock.durations import duration
from penstock.errors import SettingsError

if TYPE_CHECKING:
    from penstock.ops.capacity import Load, Need

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kKMG]?)")
_UNITS = {"": 1, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}


def register(app: typer.Typer) -> None:
    """Add the command of this file to the command line."""
    app.command()(plan)


def plan(
    rate: Annotated[str, typer.Option(help="Events a second, as 500000 or 500k.")],
    size: Annotated[str, typer.Option(help="Bytes of an event.")] = "200",
    keys: Annotated[str, typer.Option(help="Keys in state, as 10M.")] = "0",
    retention: Annotated[str, typer.Option(help="How long events are kept.")] = "7 days",
    stateful: Annotated[bool, typer.Option("--stateful", help="Flows keep state of keys.")] = False,
    windows: Annotated[bool, typer.Option("--windows", help="Flows have windows.")] = False,
    flows: Annotated[int, typer.Option(help="How many flows read the events.")] = 1,
    replication: Annotated[int, typer.Option(help="Copies of each event on brokers.")] = 3,
    headroom: Annotated[float, typer.Option(help="How much faster flows are than events come.")] = 2.0,
    as_json: Json = False,
) -> None:
    """Plan partitions, cores, memory, disk and network for a load, by what our benchmarks measured.

    Example: penstock plan --rate 500k --size 200 --keys 10M --retention "7 days" --stateful
    """
    from penstock.ops.capacity import Load, needed

    if stateful and windows:
        raise SettingsError("a plan is for --stateful or for --windows", hint="plan the costlier of the two")
    load = Load(
        rate=amount(rate, "rate"),
        size=amount(size, "size"),
        retention=duration(retention),
        work="state" if stateful else "window" if windows else "filter",
        keys=amount(keys, "keys"),
        flows=flows,
        replication=replication,
        headroom=headroom,
    )
    need = needed(load)
    if as_json:
        typer.echo(json.dumps(asdict(need), default=plain, indent=2))
    else:
        _show(load, need)


def amount(text: str, name: str) -> float:
    """Return an amount that is written with a unit or without.

    >>> amount("10M", "keys"), amount("1.5k", "rate")
    (10000000.0, 1500.0)
    """
    found = _AMOUNT.fullmatch(text.strip())
    if found is None:
        raise SettingsError(f"--{name} is {text!r}, expected an amount", hint="write 500000, 500k or 10M")
    return float(found[1]) * _UNITS[found[2]]


def _show(load: "Load", need: "Need") -> None:
    from penstock.ops.capacity.plan import mebibytes

    console.print(
        rows(
            [
                (
                    "partitions",
                    f"{need.partitions:,}",
                    f"textbook {need.textbook_partitions:,}: {need.textbook}",
                ),
                ("cores", f"{need.cores:,}", f"of flows; {need.producers:,} Python producers besides"),
                ("memory", mebibytes(need.memory), "of flows"),
                ("state", mebibytes(need.state_disk), "in checkpoints, and on the workers' disks"),
                ("disk", mebibytes(need.disk), f"of brokers, {load.replication} copies"),
                ("network in", f"{mebibytes(need.broker_in)}/s", "of brokers, copies included"),
                ("network out", f"{mebibytes(need.broker_out)}/s", "of brokers, to copies and flows"),
                ("catching up", f"{need.catches_up.total_seconds() / 60:,.0f} min", "on an hour's pause"),
            ]
        )
    )
    console.print("assumed:", style="bold")
    for each in need.assumptions:
        console.print(f"  {each}", markup=False, highlight=False, soft_wrap=True)
