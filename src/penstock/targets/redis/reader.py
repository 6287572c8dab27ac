"""For those who read what a target writes: under which prefix it is, after a flow was rebuilt."""

from typing import Any

from penstock.targets.redis.keys import key_of, pointer_key


def current_prefix(client: Any, prefix: str) -> str:
    """Return the prefix under which a target's rows are now: its own, until it is rebuilt.

    `client` is a `redis.Redis`. A rebuilt target is swapped in by setting one key, `penstock:prefix:PREFIX`.
    """
    found = client.get(pointer_key(prefix))
    if found is None:
        return prefix
    return found.decode() if isinstance(found, bytes) else str(found)


def read_hash(client: Any, prefix: str, *key: str | bytes | int) -> dict[Any, Any]:
    """Return a row of `RedisHashes`, empty if there is none, also while it is swapped for a rebuilt one."""
    before = current_prefix(client, prefix)
    while True:
        found: dict[Any, Any] = client.hgetall(key_of(before, *key))
        now = before if found else current_prefix(client, prefix)
        if now == before:
            return found
        before = now
