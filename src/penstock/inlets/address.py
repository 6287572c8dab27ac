"""Where an inlet listens: on this machine only, unless somebody asks for more."""

import socket

from penstock.errors import InletError
from penstock.web.access import is_loopback

LONGEST = 500_000  # bytes: a record of Kafka's has 1 MB at most


def check_host(host: str, *, is_guarded: bool) -> None:
    """Refuse to listen to strangers who need not say who they are, unless that was asked for."""
    if not is_loopback(host) and not is_guarded:
        raise InletError(
            f"the inlet would listen on {host!r}, where anybody who reaches it can write to the topic",
            hint="listen on 127.0.0.1, or ask for it: anyone=True (--anyone); the gateway has tokens",
        )


def check_port(port: int) -> None:
    if not 0 <= port < 65536:
        raise InletError(f"port {port} is not between 0 (any that is free) and 65535")


def check_longest(length: int) -> None:
    if not 1 <= length <= LONGEST:
        raise InletError(f"a message's longest length is {length}, expected 1 to {LONGEST} bytes")


def family_of(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def spelled(protocol: str, host: str, port: int) -> str:
    """Spell an address: `udp://127.0.0.1:9125`, `tcp://[::1]:9126`."""
    return f"{protocol}://[{host}]:{port}" if ":" in host else f"{protocol}://{host}:{port}"


def unusable(address: str, error: Exception) -> InletError:
    """Return the error of an address on which nobody can listen, or to which nobody can connect."""
    return InletError(f"can't use {address}: {error}", hint="is it taken by another program, or misspelled?")
