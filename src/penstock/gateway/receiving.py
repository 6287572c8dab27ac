"""POST /webhooks/{name}: signed requests of partners, verified, and events of a topic once for their id."""

import time
from collections.abc import Callable
from functools import partial

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.durations import duration
from penstock.errors import DataError, SettingsError
from penstock.gateway.clients import Clients
from penstock.gateway.declared import Declared
from penstock.gateway.incoming import parsed
from penstock.gateway.limits import Limits
from penstock.gateway.producing import LONGEST_KEY, Preparation, Producing
from penstock.gateway.refusal import JsonResponse, Refusal
from penstock.gateway.security import repeated_header
from penstock.gateway.submission import Prepared, key_digest
from penstock.gateway.webhook import SignedWebhook
from penstock.settings import Secret
from penstock.targets.webhook.signature import verify_signature


class Receiving:
    """Lets in what is signed, and writes it as any other request's events."""

    def __init__(
        self,
        declared: Declared,
        clients: Clients,
        producing: Producing,
        limits: Limits,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._producing, self._clock = producing, clock
        for hook in declared.webhooks.values():
            _check_window(hook, limits)
        self._hooks = {
            name: (hook, hook.secret(clients.settings), Preparation(hook.topic, clients, limits.events))
            for name, hook in declared.webhooks.items()
        }

    async def post(self, request: Request) -> Response:
        """Answer a delivery: the same id is answered as before, and writes nothing."""
        name = request.path_params["name"]
        if name not in self._hooks:
            raise Refusal(404, "gateway.unknown-webhook", f"there is no webhook {name[:100]!r} here")
        hook, secret, preparation = self._hooks[name]
        body = await request.body()
        id = self._verified(hook, secret, request, body)
        key = key_digest(f"webhook {name}", id)
        is_lines = request.headers.get("content-type", "").startswith("application/x-ndjson")
        read = partial(_read, hook, preparation, body, key, is_lines=is_lines)
        try:
            content: Prepared | Refusal | None = await run_in_threadpool(read)
        except Refusal as refusal:
            content = refusal
        if content is None:
            return JsonResponse({"topic": hook.topic.name, "events": []})
        return await self._producing.write(content, key, b"")  # the id alone says that it is the same

    def _verified(self, hook: SignedWebhook, secret: Secret, request: Request, body: bytes) -> str:
        """Return the id of a delivery whose signature is right."""
        twice = repeated_header(request.scope, hook.headers)
        if twice is not None:
            raise twice
        headers = dict(request.headers)
        verify = partial(verify_signature, names=hook.headers, tolerance=hook.window, now=self._clock())
        try:
            id = verify(secret, headers, body)
        except DataError as error:
            raise Refusal(401, "gateway.signature", error.message, hint=error.hint) from None
        if not 0 < len(id) <= LONGEST_KEY:
            message = f"{hook.headers[0]} has {len(id)} characters, expected 1 to {LONGEST_KEY}"
            raise Refusal(400, "gateway.key", message)
        return id


def _check_window(hook: SignedWebhook, limits: Limits) -> None:
    """Refuse keys that are forgotten while a signature is good: a window before its time, and one after."""
    good = 2 * duration(hook.window)
    if limits.keys < good:
        raise SettingsError(
            f"gateway.keys is {limits.keys}; signatures of webhook {hook.name!r} are good for {good}",
            hint="remember keys for twice the window, or more: keys under [gateway]",
        )


def _read(
    hook: SignedWebhook, preparation: Preparation, body: bytes, key: bytes, *, is_lines: bool
) -> Prepared | None:
    content = [parsed(line) for line in body.splitlines() if line.strip()] if is_lines else parsed(body)
    try:
        values = hook.values(content)
    except Exception as error:  # a function of the user's may fail in any way at what a stranger sends
        message = f"webhook {hook.name!r} makes no event of the body: {error or type(error).__name__}"
        raise Refusal(422, "gateway.webhook", message) from None
    return preparation.prepared(values, key) if values else None
