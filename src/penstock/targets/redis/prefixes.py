"""Prefixes of targets: which ones there are, which one readers see, and what is left of former ones."""

from collections.abc import Iterator

from penstock.errors import TargetError
from penstock.targets.redis.client import Client
from penstock.targets.redis.keys import PREFIXES, leftovers_key, pattern, pointer_key
from penstock.targets.redis.reader import current_prefix

BESIDE = "@"
_AT_ONCE = 1000  # keys
# Readers see the one or the other, and what was there before is written down to be removed.
_SWAP = """
local now = redis.call('GET', KEYS[1]) or ARGV[1]
if now ~= ARGV[2] then
  redis.call('SADD', KEYS[2], now)
  redis.call('SREM', KEYS[2], ARGV[2])
  redis.call('SET', KEYS[1], ARGV[2])
end
"""


def refuse_overlap(client: Client, prefix: str) -> None:
    """Refuse a prefix whose rows could have the keys of another one's."""
    known = {each.decode() for each in client.smembers(PREFIXES)}
    for other in sorted(known):
        if other.startswith(f"{prefix}:") or prefix.startswith(f"{other}:"):
            raise TargetError(
                f"the prefixes {prefix!r} and {other!r} overlap: rows of both could have the same key",
                hint=f"use another; if {other!r} is gone for good: SREM {PREFIXES} {other}",
            )


def empty_beside(client: Client, prefix: str) -> None:
    """Empty the place of a target beside another, for a sink that is new; refuse what readers see."""
    base, beside, _ = prefix.rpartition(BESIDE)
    if not beside:
        return
    if current_prefix(client, base) == prefix:
        raise TargetError(
            f"{prefix!r} is what readers of {base!r} see already", hint="rebuild under another name"
        )
    for kind in ("hash", "zset"):
        remove(client, prefix, kind)
    client.srem(leftovers_key(base), prefix)


def swap(client: Client, prefix: str, rebuilt: str, kind: str) -> None:
    """Let readers of a prefix see the rebuilt one, and remove what they saw before; it may be repeated."""
    leftovers = leftovers_key(prefix)
    client.eval(_SWAP, 2, pointer_key(prefix), leftovers, prefix, rebuilt)
    for former in client.smembers(leftovers):
        remove(client, former.decode(), kind)
        client.srem(leftovers, former)
        if former.decode() != prefix:
            client.srem(PREFIXES, former)


def keys_below(client: Client, prefix: str, kind: str) -> Iterator[list[bytes]]:
    """Yield the keys of a kind below a prefix, some at a time, each at least once."""
    cursor = 0
    while True:
        cursor, keys = client.scan(cursor, match=pattern(prefix), count=_AT_ONCE, _type=kind)
        if keys:
            yield keys
        if not cursor:
            return


def remove(client: Client, prefix: str, kind: str) -> None:
    """Remove the keys of a kind at and below a prefix; their memory is freed in the background."""
    if client.type(prefix) == kind.encode() == b"zset":
        client.unlink(prefix)
    for keys in keys_below(client, prefix, kind):
        client.unlink(*keys)
