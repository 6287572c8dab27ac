"""Connections: how many there may be, and how long one may take to say what it wants, or to take it."""

import asyncio
import socket

from uvicorn.protocols.http.h11_impl import H11Protocol

_SAY_S = 15.0
_READ_S = 30.0  # in which a client takes something of what it is sent
_USER_TIMEOUT: int | None = getattr(socket, "TCP_USER_TIMEOUT", None)
_LINGER_S = 1.0  # in which a client that is turned away reads why
_WHY = b'{"id":"gateway.too-many","message":"too many connections are open"}'
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(_WHY), _WHY)
)


def bounded_protocol(most: int) -> type[H11Protocol]:
    """Return uvicorn's protocol for at most so many connections; one that says or takes nothing is closed."""

    class BoundedProtocol(H11Protocol):
        _silence: asyncio.TimerHandle | None = None
        _is_turned_away = False

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            # The kernel knows whether the other side has room; it gives up one that has none for so long.
            if _USER_TIMEOUT is not None:  # only Linux has it
                channel = transport.get_extra_info("socket")
                channel.setsockopt(socket.IPPROTO_TCP, _USER_TIMEOUT, round(_READ_S * 1000))
            if len(self.connections) > most:
                self._turn_away()
            else:
                self._wait()

        def _turn_away(self) -> None:
            """Answer before anything is asked; what is closed at once would reset the answer, too."""
            self._is_turned_away = True
            self.connections.discard(self)
            self.transport.write(_FULL)
            self.loop.call_later(_LINGER_S, self.transport.close)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            if self._is_turned_away:
                return
            super().data_received(data)
            if self.cycle is not None and not self.cycle.response_complete:
                self._stop_waiting()
            elif self._silence is None:
                self._wait()

        def _wait(self) -> None:
            self._silence = self.loop.call_later(_SAY_S, self._give_up)

        def _stop_waiting(self) -> None:
            if self._silence is not None:
                self._silence.cancel()
                self._silence = None

        def _give_up(self) -> None:
            if self.transport.get_protocol() is self:  # it may be a WebSocket by now
                self.transport.close()

    return BoundedProtocol
