"""The bank over HTTP: `penstock gateway -m penstock.apps.bank.http` serves it under /bank."""

from collections.abc import Callable
from dataclasses import asdict
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from penstock.apps.bank.account import (
    Close,
    Closed,
    Deposit,
    Deposited,
    NotOpen,
    Open,
    Opened,
    Withdraw,
    Withdrawn,
    account,
)
from penstock.apps.bank.ledger import lines
from penstock.apps.bank.pipeline import STORE, bank
from penstock.apps.bank.transfer import RequestTransfer, Stage
from penstock.apps.bank.transfers import Bank
from penstock.apps.bank.wording import worded
from penstock.documents import JsonObject
from penstock.errors import RefusedError
from penstock.gateway.incoming import parsed
from penstock.gateway.producing import KEY, check_json
from penstock.gateway.refusal import JsonResponse, Refusal
from penstock.settings import Settings
from penstock.sourcing import Command, CommandHandler, DomainEvent, EventStore, Receipt

__all__ = ["bank", "gateway_routes"]
_PREFIX = "http "  # of command ids, which the counter's share a store with
_LEADS_TO: dict[type[Command], Callable[..., DomainEvent]] = {
    Open: Opened, Deposit: Deposited, Withdraw: Withdrawn, Close: Closed,
}  # fmt: skip


def gateway_routes(settings: Settings) -> list[Route]:
    """Return the bank's routes; the gateway guards them as it does its own."""
    counter = Counter(settings)
    own, transfer = "/bank/accounts/{account}", "/bank/transfers/{transfer}"
    return [
        Route(own, _answering(counter.open), methods=["POST"]),
        Route(own, _answering(counter.show), methods=["GET"]),
        Route(own, _answering(counter.close), methods=["DELETE"]),
        Route(f"{own}/deposits", _answering(counter.deposit), methods=["POST"]),
        Route(f"{own}/withdrawals", _answering(counter.withdraw), methods=["POST"]),
        Route(f"{own}/history", _answering(counter.history), methods=["GET"]),
        Route(transfer, _answering(counter.transfer), methods=["POST"]),
        Route(transfer, _answering(counter.show_transfer), methods=["GET"]),
    ]


class Counter:
    """Does what requests ask for: each method takes a request and the fields of its body."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _bank(self) -> Bank:
        return Bank(EventStore(STORE, self._settings, size=8))

    def open(self, request: Request, fields: JsonObject) -> JsonObject:
        return self._done(request, Open(_text(fields, "owner")))

    def deposit(self, request: Request, fields: JsonObject) -> JsonObject:
        return self._done(request, Deposit(_amount(fields)))

    def withdraw(self, request: Request, fields: JsonObject) -> JsonObject:
        return self._done(request, Withdraw(_amount(fields)))

    def close(self, request: Request, _: JsonObject) -> JsonObject:
        return self._done(request, Close())

    def show(self, request: Request, _: JsonObject) -> JsonObject:
        """An account now, or as of `?at=`."""
        name = request.path_params["account"]
        loaded = self._bank.accounts.load(name, until=_moment(request.query_params.get("at")))
        if not loaded.version:
            raise _unknown(f"there is no account {name!r}, or there was none then")
        return {"account": name, "version": loaded.version, **asdict(loaded.state)}

    def history(self, request: Request, _: JsonObject) -> JsonObject:
        """All that ever happened to an account."""
        name = request.path_params["account"]
        found = [asdict(line) for line in lines(self._bank.store.read("account", name))]
        if not found:
            raise _unknown(f"there is no account {name!r}")
        return {"account": name, "lines": found}

    def transfer(self, request: Request, fields: JsonObject) -> JsonObject:
        """Ask for a transfer; its name is its key, so that it is asked for once."""
        name = request.path_params["transfer"]
        command = RequestTransfer(_text(fields, "payer"), _text(fields, "payee"), _amount(fields))
        _executed(self._bank.transfers, name, command, f"transfer {name}")
        found = self._bank.transfers.load(name).state
        if (found.payer, found.payee, found.amount) != (command.payer, command.payee, command.amount):
            raise _reused(f"the transfer {name!r} was asked for before, otherwise")
        return {"transfer": name, **asdict(found)}

    def show_transfer(self, request: Request, _: JsonObject) -> JsonObject:
        name = request.path_params["transfer"]
        found = self._bank.transfers.load(name).state
        if found.stage is Stage.NONE:
            raise _unknown(f"there is no transfer {name!r}")
        return {"transfer": name, **asdict(found)}

    def _done(self, request: Request, command: Command) -> JsonObject:
        name, key = request.path_params["account"], request.headers.get(KEY)
        accounts = self._bank.accounts
        receipt = _executed(accounts, name, command, None if key is None else _PREFIX + key)
        if receipt.repeated and not _is_of(receipt, command):
            raise _reused(f"the key {key!r} was used for another command")
        after = accounts.load(name, to=receipt.version).state
        return {"account": name, "version": receipt.version, "repeated": receipt.repeated, **asdict(after)}


def _answering(handle: Callable[[Request, JsonObject], JsonObject]) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        fields: Any = {}
        if request.method == "POST":
            check_json(request)
            fields = await run_in_threadpool(parsed, await request.body())
            if not isinstance(fields, dict):
                raise Refusal(422, "bank.body", "the body is no JSON object", hint='send {"amount": "12.50"}')
        return JsonResponse(await run_in_threadpool(handle, request, fields))

    return answer


def _executed(handler: CommandHandler[Any], stream: str, command: Command, id: str | None) -> Receipt:
    try:
        return handler.execute(stream, command, id=id, actor="http")
    except RefusedError as refused:
        why: Any = refused.refusal
        status = 404 if isinstance(why, NotOpen) else 409
        kind = {"refusal": type(why).__name__, **asdict(why)}
        raise Refusal(status, "bank.refused", worded(why), details=kind) from None


def _is_of(receipt: Receipt, command: Command) -> bool:
    """Whether a command that was done before was this one: it led to the same event."""
    expected = _LEADS_TO[type(command)](**asdict(command))
    return account.types.events_of(receipt.records[0]) == (expected,)


def _amount(fields: JsonObject) -> Decimal:
    given = fields.get("amount")
    try:
        if isinstance(given, str | int | Decimal) and not isinstance(given, bool):
            return Decimal(given)
    except InvalidOperation:
        pass
    raise Refusal(422, "bank.amount", f"the amount is {str(given)[:50]!r}", hint='write "amount": "12.50"')


def _text(fields: JsonObject, name: str) -> str:
    given = fields.get(name)
    if isinstance(given, str):
        return given
    raise Refusal(422, "bank.field", f"{name} is {str(given)[:50]!r}, expected a text", hint=f'add "{name}"')


def _moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise Refusal(422, "bank.time", f"at is {text[:50]!r}", hint="write it as 2026-11-17T12:00:00Z")
    return found


def _unknown(message: str) -> Refusal:
    return Refusal(404, "bank.unknown", message)


def _reused(message: str) -> Refusal:
    return Refusal(422, "bank.key-reused", message, hint="give each command a key of its own")
