"""penstock bank: accounts and transfers of the bank application, each command an event or a refusal."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli.output import Json, console, show
from penstock.cli.supervised import supervise
from penstock.errors import ConfigurationError, RefusedError
from penstock.settings import Settings

if TYPE_CHECKING:
    from penstock.apps.bank.ledger import Line
    from penstock.apps.bank.transfer import Transfer
    from penstock.apps.bank.transfers import Bank
    from penstock.sourcing import CommandHandler, Receipt
    from penstock.sourcing.domain import Command

app = typer.Typer(help="An event-sourced bank: pay in, transfer, look back.", no_args_is_help=True)
Store = Annotated[str, typer.Option("--store", help="The event store.")]
Id = Annotated[
    str | None, typer.Option("--id", help="The command's id: with the same one, nothing happens twice.")
]
Actor = Annotated[str | None, typer.Option("--actor", help="Who does it.")]
_REFUSED, _UNKNOWN, _PENDING = 2, 66, 75
_BOOK = ("version", "at", "type", "amount", "balance", "transfer", "actor")


@app.command("open")
def open_(account: str, owner: str, id: Id = None, actor: Actor = None, store: Store = "bank") -> None:
    """Open an account.

    Example: penstock bank open ada "Ada Lovelace"
    """
    from penstock.apps.bank.account import Open

    with _bank(store) as bank:
        receipt = _executed(bank.accounts, account, Open(owner), id, actor)
    _report(receipt, f"opened {account} for {owner}")


@app.command()
def deposit(account: str, amount: str, id: Id = None, actor: Actor = None, store: Store = "bank") -> None:
    """Pay money in.

    Example: penstock bank deposit ada 250.00 --id slip-17
    """
    from penstock.apps.bank.account import Deposit

    with _bank(store) as bank:
        receipt = _executed(bank.accounts, account, Deposit(_amount(amount)), id, actor)
        _report(receipt, f"paid {amount} into {account}", _balance(bank, receipt))


@app.command()
def withdraw(account: str, amount: str, id: Id = None, actor: Actor = None, store: Store = "bank") -> None:
    """Take money out; end with 2 if it is not there.

    Example: penstock bank withdraw ada 20.00 --actor "teller 3"
    """
    from penstock.apps.bank.account import Withdraw

    with _bank(store) as bank:
        receipt = _executed(bank.accounts, account, Withdraw(_amount(amount)), id, actor)
        _report(receipt, f"took {amount} out of {account}", _balance(bank, receipt))


@app.command()
def close(account: str, id: Id = None, actor: Actor = None, store: Store = "bank") -> None:
    """Close an account that is empty and has no transfer under way.

    Example: penstock bank close ada
    """
    from penstock.apps.bank.account import Close

    with _bank(store) as bank:
        receipt = _executed(bank.accounts, account, Close(), id, actor)
    _report(receipt, f"closed {account}")


@app.command()
def transfer(
    payer: str,
    payee: str,
    amount: str,
    id: Annotated[str | None, typer.Option("--id", help="The transfer's name; a new one if none.")] = None,
    actor: Actor = None,
    wait: Annotated[float, typer.Option(min=0, help="How many seconds to wait for its end.")] = 10.0,
    store: Store = "bank",
) -> None:
    """Send money to another account; end with 2 if it came back, with 75 if it is still under way.

    `penstock bank process` has to run somewhere: it carries transfers out.

    Example: penstock bank transfer ada bob 30.00 --id rent-2026-11
    """
    from penstock.apps.bank.transfer import RequestTransfer
    from penstock.events import new_id

    name = id or new_id()
    with _bank(store) as bank:
        command = RequestTransfer(payer, payee, _amount(amount))
        receipt = _executed(bank.transfers, name, command, f"transfer {name}", actor)
        _refuse_another(bank, receipt, command)
        _show_end(name, _ended(bank, name, wait))


@app.command()
def process(
    once: Annotated[bool, typer.Option("--once", help="End when all that is there was done.")] = False,
    store: Store = "bank",
) -> None:
    """Carry transfers out until Ctrl-C: take the money, hand it over, or bring it back.

    The work is done by a child process, which is started again if it is killed or breaks.

    Example: penstock bank process
    """
    if not once:
        supervise(lambda line: console.print(line, markup=False, highlight=False))
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with _bank(store) as bank:
        console.print(f"carrying out the transfers of {store}", markup=False, highlight=False)
        bank.process().run(stopped, follow=not once)
    console.print("stopped", markup=False)


@app.command()
def balance(
    account: str,
    at: Annotated[str | None, typer.Option("--at", help="Then, not now: 2026-11-17T12:00:00Z")] = None,
    as_json: Json = False,
    store: Store = "bank",
) -> None:
    """Show what is in an account, now or at a time of the past.

    Example: penstock bank balance ada --at 2026-11-17T12:00:00Z
    """
    with _bank(store) as bank:
        loaded = bank.accounts.load(account, until=_moment(at) if at else None)
    if not loaded.version:
        _end(f"there {'was' if at else 'is'} no account {account}", _UNKNOWN)
    if as_json:
        show([asdict(loaded.state)], (), as_json=True, empty="")
        return
    state = ", closed" if loaded.state.closed else ""
    console.print(f"{loaded.state.balance}{state}", markup=False, highlight=False)


@app.command()
def statement(
    account: str,
    month: Annotated[str | None, typer.Option(help="As 2026-11; this month if none.")] = None,
    as_json: Json = False,
    store: Store = "bank",
) -> None:
    """Show a month of an account: what was there, what moved, what is there.

    Example: penstock bank statement ada --month 2026-11
    """
    from penstock.apps.bank.ledger import statement as statement_of

    wanted = _month(month)
    found = statement_of(_book(account, store), wanted)
    if as_json:
        show([asdict(found)], (), as_json=True, empty="")
        return
    before, after = {"type": "before", "balance": found.before}, {"type": "after", "balance": found.after}
    shown = [before, *(asdict(each) for each in found.lines), after]
    show(shown, ("at", "type", "amount", "balance", "transfer"), as_json=False, empty="")
    console.print(f"in {found.paid_in}, out {found.paid_out}", markup=False, highlight=False)


@app.command()
def history(account: str, as_json: Json = False, store: Store = "bank") -> None:
    """Show all that ever happened to an account, and who did it.

    Example: penstock bank history ada
    """
    show(_book(account, store), _BOOK, as_json=as_json, empty="")


@app.command()
def accounts(
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 100,
    as_json: Json = False,
    store: Store = "bank",
) -> None:
    """List the accounts, with what is in them now.

    Example: penstock bank accounts --limit 20
    """
    from itertools import islice

    with _bank(store) as bank:
        names = islice(bank.store.streams("account"), limit)
        found = [{"account": name} | asdict(bank.accounts.load(name).state) for name in names]
    columns = ("account", "owner", "balance", "closed", "sending")
    show(found, columns, as_json=as_json, empty="no accounts yet: penstock bank open ada Ada")


@contextmanager
def _bank(name: str) -> "Iterator[Bank]":
    from penstock.apps.bank.transfers import Bank
    from penstock.sourcing import EventStore

    with EventStore(name, Settings.load(), size=4) as store:
        yield Bank(store)


def _executed(
    handler: "CommandHandler[Any]", stream: str, command: "Command", id: str | None, actor: str | None
) -> "Receipt":
    try:
        return handler.execute(stream, command, id=id, actor=actor)
    except RefusedError as refused:
        _end(f"refused: {_worded(refused.refusal)}", _REFUSED)
        raise


def _worded(refusal: Any) -> str:
    from penstock.apps.bank.wording import worded

    return worded(refusal)


def _balance(bank: "Bank", receipt: "Receipt") -> str:
    """What was there when the command was done, whenever that was."""
    return str(bank.accounts.load(receipt.stream, to=receipt.version).state.balance)


def _report(receipt: "Receipt", what: str, balance: str = "") -> None:
    before = "it was done before: " if receipt.repeated else ""
    after = f"; there is {balance} now" if balance and not receipt.repeated else ""
    console.print(f"{before}{what}{after}", markup=False, highlight=False)


def _refuse_another(bank: "Bank", receipt: "Receipt", command: "Command") -> None:
    """A name that was used for another transfer is no repeated command."""
    asked = bank.transfers.load(receipt.stream).state
    if (asked.payer, asked.payee, asked.amount) != tuple(asdict(command).values()):
        was = f"{asked.amount} from {asked.payer} to {asked.payee}"
        raise ConfigurationError(
            f"the transfer {receipt.stream} was asked for before: {was}", hint="give this one another --id"
        )


def _ended(bank: "Bank", name: str, seconds: float) -> "Transfer":
    """Wait for the end of a transfer, but not for long."""
    until = time.monotonic() + seconds
    while True:
        found = bank.transfers.load(name).state
        if found.stage.value in ("completed", "failed") or time.monotonic() > until:
            return found
        time.sleep(0.05)


def _show_end(name: str, found: "Transfer") -> None:
    what = f"{found.amount} from {found.payer} to {found.payee}"
    match found.stage.value:
        case "completed":
            console.print(f"transferred {what} ({name})", markup=False, highlight=False)
        case "failed":
            _end(f"refused: {what}: {found.reason} ({name})", _REFUSED)
        case stage:
            _end(f"{stage}: {what} ({name}); does `penstock bank process` run?", _PENDING)


def _book(account: str, store: str) -> "list[Line]":
    from penstock.apps.bank.ledger import lines

    with _bank(store) as bank:
        found = list(lines(bank.store.read("account", account)))
    if not found:
        _end(f"there is no account {account}", _UNKNOWN)
    return found


def _end(what: str, code: int) -> None:
    typer.echo(what, err=True)
    raise typer.Exit(code)


def _amount(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ConfigurationError(f"{text!r} is not an amount", hint="write it as 12.50") from None


def _month(text: str | None) -> str:
    if text is None:
        return f"{datetime.now(UTC):%Y-%m}"
    try:
        return f"{datetime.strptime(text, '%Y-%m'):%Y-%m}"
    except ValueError:
        raise ConfigurationError(f"{text!r} is not a month", hint="write it as 2026-11") from None


def _moment(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigurationError(f"{text!r} is not a time", hint="write it as 2026-11-17T12:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
