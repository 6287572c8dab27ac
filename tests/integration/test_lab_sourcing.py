"""Experiment 6: balances, replays and the past are what SQL over the stored events says."""

from datetime import datetime

import psycopg
import pytest
from tests.laboratory import tried

from penstock.lab.experiments.sourcing.experiment import EXPERIMENT

_ROWS = """
SELECT version, type, at, coalesce(((record->>'data')::json->>'amount')::numeric, 0) FROM lab_{}.events
WHERE stream = 'ada' ORDER BY version
"""
_SIGNS = {"Deposited": 1, "Withdrawn": -1, "Opened": 0}


def stored(settings, run):
    with psycopg.connect(settings.dsn().value) as connection:
        return connection.execute(_ROWS.format(run)).fetchall()


def balance(rows):
    return float(sum(_SIGNS[kind] * amount for _, kind, _, amount in rows))


def test_the_balance_is_what_the_events_come_to(settings):
    with tried(EXPERIMENT, settings, rate=0, most="1,000") as lab:
        lab.until(lambda found: found.get("version") == 1)
        run = lab.frame["run"]
        for button in ("deposit", "deposit", "withdraw", "overdraw"):
            lab.press(button)
        found = lab.until(lambda found: found["refused"] == 1 and found["version"] == 4)
        rows = stored(settings, run)
        assert (found["balance"], len(rows)) == (balance(rows), 4) == (25.0, 4)
        lab.press("replay")
        found = lab.until(lambda found: found["replay_events"] == 4)
        assert found["replay_balance"] == 25.0
        lab.change(rate=20, ago=2)
        found = lab.until(
            lambda found: found["version"] > 60 and 4 < found["past_version"] < found["version"]
        )
        moment = datetime.fromisoformat(found["past_at"])
        then = [row for row in stored(settings, run) if row[2] <= moment]
        assert (found["past_version"], found["past_balance"]) == (len(then), balance(then))
        found = lab.until(lambda found: found.get("measured") == 2)
        assert (found["behind_10"], found["behind_1000"]) == (10, 50)
        assert found["kept_1000"] < found["plain_1000"]
    with psycopg.connect(settings.dsn().value) as connection:
        assert connection.execute("SELECT to_regnamespace(%s)", [f"lab_{run}"]).fetchone() == (None,)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_snapshot_makes_a_long_history_short(settings):
    with tried(EXPERIMENT, settings, rate=10) as lab:
        found = lab.until(lambda found: found.get("measured") == 3, 170)
        with psycopg.connect(settings.dsn().value) as connection:
            counted = connection.execute(
                f"SELECT stream, count(*) FROM lab_{lab.frame['run']}.events WHERE stream <> 'ada' GROUP BY 1"
            ).fetchall()
        assert dict(counted) == {"history-10": 10, "history-1000": 1_000, "history-100000": 100_000}
        assert found["behind_100000"] == 50
        assert found["plain_100000"] > 50 * found["kept_100000"]
        assert found["kept_100000"] < 10 * found["kept_1000"] + 50
