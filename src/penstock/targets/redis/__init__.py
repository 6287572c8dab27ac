"""Results into Redis, exactly once: hashes, sorted sets, and keys of a cache that are invalidated."""

from penstock.targets.redis.hashes import RedisHashes
from penstock.targets.redis.invalidation import RedisInvalidation
from penstock.targets.redis.keys import key_of
from penstock.targets.redis.reader import current_prefix, read_hash
from penstock.targets.redis.sorted_set import RedisSortedSet

__all__ = [
    "RedisHashes",
    "RedisInvalidation",
    "RedisSortedSet",
    "current_prefix",
    "key_of",
    "read_hash",
]
