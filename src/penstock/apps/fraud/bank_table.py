"""The bank's own table of profiles, which is captured."""

import time
from collections.abc import Iterable

import psycopg

from penstock.apps.fraud.events import Profile
from penstock.capture import Capture, Store
from penstock.errors import InternalError
from penstock.settings import Settings

CAPTURE = Capture("fraud", tables=("public.profiles",))
_CREATE = """
CREATE TABLE profiles (
    card text PRIMARY KEY,
    home_lat double precision NOT NULL,
    home_lon double precision NOT NULL,
    usual double precision NOT NULL
)
"""
_COPY = "COPY profiles (card, home_lat, home_lon, usual) FROM STDIN"
_READ = "SELECT card, home_lat, home_lon, usual FROM profiles"
_PATIENCE = 60.0


def fill(settings: Settings, profiles: Iterable[Profile]) -> None:
    """Make the table with these profiles in it, and declare the capture of it."""
    with psycopg.connect(settings.dsn().value) as connection, connection.cursor() as cursor:
        cursor.execute(_CREATE)
        with cursor.copy(_COPY) as copy:
            for each in profiles:
                copy.write_row((each.card, each.home_lat, each.home_lon, each.usual))
    Store(settings).put(CAPTURE)


def read(settings: Settings) -> dict[str, Profile]:
    """Return the profiles as the table has them, by their cards."""
    with psycopg.connect(settings.dsn().value) as connection:
        return {row[0]: Profile(*row, id=row[0]) for row in connection.execute(_READ)}


def is_captured(settings: Settings) -> bool:
    """Whether all rows that were there at first are in the log."""
    position = Store(settings).position(CAPTURE.name)
    return position is not None and all(each.done for each in position.tables.values())


def await_captured(settings: Settings) -> None:
    """Wait until they are, but not for ever."""
    deadline = time.monotonic() + _PATIENCE
    while not is_captured(settings):
        if time.monotonic() > deadline:
            raise InternalError(f"the profiles were not captured within {_PATIENCE:.0f} s")
        time.sleep(0.1)
