"""A wish to read a table, or a range of its keys, again."""

from dataclasses import dataclass

Key = tuple[str, ...]


@dataclass(frozen=True)
class SnapshotRequest:
    """A table that is to be read again, or only its rows behind the key `after`, up to `last`.

    Keys in `absent` are deleted in the topic, unless the table has them when it is read.
    """

    path: str
    after: Key | None = None
    last: Key | None = None
    absent: tuple[Key, ...] = ()

    @property
    def is_range(self) -> bool:
        return self.after is not None or self.last is not None
