"""Keys of subjects: what is personal is written with the key of whom it is about, and erased with it."""

import os
import threading
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import OrderedDict
from typing import TYPE_CHECKING

from penstock.errors import ConfigurationError, ErasedError, SetupError
from penstock.sourcing.database import Database

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MARK = "enc:1:"  # what an encrypted text begins with
_NONCE = 12
_REMEMBERED, _FRESH = 10_000, 30.0  # keys, and seconds after which one is asked for again
_TABLE = """
    CREATE SCHEMA IF NOT EXISTS {schema};
    CREATE TABLE IF NOT EXISTS {schema}.subject_keys (
        subject text PRIMARY KEY,
        key bytea,
        erased timestamptz,
        CHECK ((key IS NULL) = (erased IS NOT NULL))
    )"""
_FIND = "SELECT key FROM {schema}.subject_keys WHERE subject = %s"
_MAKE = """
    INSERT INTO {schema}.subject_keys (subject, key) VALUES (%s, %s)
    ON CONFLICT (subject) DO UPDATE SET subject = excluded.subject RETURNING key"""
_ERASE = """
    INSERT INTO {schema}.subject_keys (subject, erased) VALUES (%s, now())
    ON CONFLICT (subject) DO UPDATE SET key = NULL, erased = coalesce(subject_keys.erased, now())"""
_HAD_KEY = "SELECT key IS NOT NULL FROM {schema}.subject_keys WHERE subject = %s FOR UPDATE"


class SubjectKeys:
    """The keys of the people that a store's events are about, in a table outside the log.

    Without its key, nobody can read what was written of a subject: not in the store, a topic, an archive, a
    snapshot or a view. A process remembers a key for half a minute.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._known: OrderedDict[str, tuple[float, AESGCM | None]] = OrderedDict()
        self._lock = threading.Lock()
        self._erasures = 0

    def create(self) -> None:
        """Make the table of keys unless it is there."""
        with self._database.asking("make the table of keys"), self._database.connection() as lent:
            lent.execute(self._database.sql(_TABLE))

    def encrypt(self, subject: str, text: str, place: str) -> str:
        """Return a text that only the subject's key opens, and only in the place it was written for."""
        cipher = self._cipher(subject, make=True)
        if cipher is None:
            raise ErasedError(subject)
        nonce = os.urandom(_NONCE)
        sealed = nonce + cipher.encrypt(nonce, text.encode(), place.encode())
        return MARK + urlsafe_b64encode(sealed).decode()

    def decrypt(self, subject: str, text: str, place: str) -> str | None:
        """Return what a text says, or None if the subject was erased."""
        if not text.startswith(MARK):
            raise ConfigurationError(f"a text in {place} is not encrypted", hint="is it the right column?")
        cipher = self._cipher(subject, make=False)
        if cipher is None:
            return None
        from cryptography.exceptions import InvalidTag

        sealed = urlsafe_b64decode(text.removeprefix(MARK))
        try:
            return cipher.decrypt(sealed[:_NONCE], sealed[_NONCE:], place.encode()).decode()
        except InvalidTag:
            raise ConfigurationError(
                f"a text of the subject {subject!r} can't be decrypted in {place}",
                hint="was it copied from elsewhere, or made with another table of keys?",
            ) from None

    def erase(self, subject: str) -> bool:
        """Forget a subject's key, for ever, and return whether it had one.

        What was written with it can't be read by anybody, and nothing personal is written of it again.
        """
        sql, database = self._database.sql, self._database
        with database.asking("erase a key"), database.connection() as lent, lent.transaction():
            found = lent.execute(sql(_HAD_KEY), [subject]).fetchone()
            lent.execute(sql(_ERASE), [subject])
        with self._lock:
            self._known.pop(subject, None)
            self._erasures += 1
        return found == (True,)

    def _cipher(self, subject: str, *, make: bool) -> "AESGCM | None":
        with self._lock:
            at, cipher = self._known.get(subject, (0.0, None))
            erasures = self._erasures
        if cipher is not None and time.monotonic() - at < _FRESH:
            return cipher
        cipher = self._found(subject, make)
        with self._lock:
            if erasures != self._erasures:  # it may be the one that was erased
                return cipher
            self._known[subject] = (time.monotonic(), cipher)
            self._known.move_to_end(subject)
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return cipher

    def _found(self, subject: str, make: bool) -> "AESGCM | None":
        with self._database.asking("read a key"), self._database.connection() as lent:
            found = lent.execute(self._database.sql(_FIND), [subject]).fetchone()
            if found is None and make:
                found = lent.execute(self._database.sql(_MAKE), [subject, os.urandom(32)]).fetchone()
        if found is None:
            raise ConfigurationError(
                f"there is no key of the subject {subject!r}, and it was not erased",
                hint="is keys= the connection to the database in which they are?",
            )
        return None if found[0] is None else _cipher_of(found[0])


def _cipher_of(key: bytes) -> "AESGCM":
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ModuleNotFoundError as error:
        raise SetupError(
            "personal data needs the package cryptography", hint="pip install 'penstock[erasure]'"
        ) from error
    return AESGCM(key)
