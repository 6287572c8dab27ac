"""The server's character sets, as Python knows them."""

import codecs
from collections.abc import Callable

from penstock.capture.mysql.server import Server
from penstock.capture.mysql.table_map import BINARY
from penstock.errors import CaptureError

Decode = Callable[[bytes], bytes]  # of a text in a column's character set, its text in UTF-8
_CODECS = {
    "utf8mb3": "utf-8", "utf8mb4": "utf-8", "utf8": "utf-8", "ascii": "ascii", "ucs2": "utf-16-be",
    "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be", "latin2": "iso8859-2",
    "latin5": "iso8859-9", "latin7": "iso8859-13", "greek": "iso8859-7", "hebrew": "iso8859-8",
    "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256", "cp1257": "cp1257", "cp850": "cp850",
    "cp852": "cp852", "cp866": "cp866", "koi8r": "koi8-r", "koi8u": "koi8-u", "macce": "mac-latin2",
    "macroman": "mac-roman", "sjis": "shift-jis", "cp932": "cp932", "ujis": "euc-jp", "eucjpms": "euc-jp",
    "big5": "big5", "gbk": "gbk", "gb2312": "gb2312", "euckr": "cp949", "tis620": "tis-620",
}  # fmt: skip
_PLAIN = ("ascii", "utf8", "utf8mb3", "utf8mb4")
_IDS = "select id, character_set_name from information_schema.{}"
_TABLES = ("collations", "collation_character_set_applicability")


class Charsets:
    """Finds what makes UTF-8 of a column's texts."""

    def __init__(self, server: Server) -> None:
        self._names: dict[int, str] = {}
        for table in _TABLES:
            has_ids = server.one(
                "select 1 from information_schema.columns where table_schema = 'information_schema' "
                "and table_name = %s and column_name = 'ID'",
                table.upper(),
            )
            for id, name in server.ask(_IDS.format(table)) if has_ids else ():
                if id is not None and name is not None:
                    self._names[int(id)] = name

    def of(self, collation: int, column: str) -> Decode:
        """Return what decodes texts of a collation."""
        name = "binary" if collation == BINARY else self._names.get(collation, f"number {collation}")
        if name in (*_PLAIN, "binary"):
            return bytes
        if name == "latin1":
            return _latin1
        if name not in _CODECS:
            raise unknown(name, column)
        decode = codecs.lookup(_CODECS[name]).decode

        def decoded(value: bytes) -> bytes:
            """A text that the server took though it is none must not stop all that comes behind it."""
            return decode(value, "replace")[0].encode()

        return decoded


def unknown(name: str, column: str) -> CaptureError:
    return CaptureError(
        f"column {column!r} has the character set {name!r}, which can't be decoded here",
        hint="ALTER TABLE … CONVERT TO CHARACTER SET utf8mb4",
    )


def is_known(name: str) -> bool:
    return name in _CODECS or name == "latin1" or name in _PLAIN


_LATIN1 = [bytes([each]).decode("cp1252", errors="replace") for each in range(256)]
_LATIN1 = [chr(place) if each == "\ufffd" else each for place, each in enumerate(_LATIN1)]


def _latin1(value: bytes) -> bytes:
    """The server's latin1 is Windows' 1252, with the five that it lacks as they are."""
    return value if value.isascii() else "".join([_LATIN1[each] for each in value]).encode()
