"""Confluent's message indexes: which message of its file a body is, in zigzag varints before it."""

from penstock.errors import DecodeError

FIRST = (0,)
_MOST_BYTES = 5  # of a varint of 32 bits
_DEEPEST = 100


def split_indexes(body: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the path to the message's type, and the message.

    >>> split_indexes(b"\\x00abc")
    ((0,), b'abc')
    >>> split_indexes(b"\\x04\\x02\\x00abc")
    ((1, 0), b'abc')
    """
    if body[:1] == b"\0":  # as most are
        return FIRST, body[1:]
    count, at = _varint(body, 0)
    if not 0 < count <= _DEEPEST:
        raise DecodeError(f"a message type of {count} indexes")
    path = []
    for _ in range(count):
        index, at = _varint(body, at)
        path.append(index)
    return tuple(path), body[at:]


def _varint(body: bytes, at: int) -> tuple[int, int]:
    number = 0
    for place in range(_MOST_BYTES):
        if at + place >= len(body):
            raise DecodeError("the indexes of the message's type are cut off")
        byte = body[at + place]
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + place + 1
    raise DecodeError("an index of the message's type is too long")
