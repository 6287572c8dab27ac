"""A driver that is killed in the middle of merging a million rows leaves exactly those rows behind."""

import time
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.integration import counters
from tests.integration.counters import Count, counting, counts

from penstock.log import Broker, Producer, apply
from penstock.settings import reveal
from penstock.testing import Driver, wait_until_caught_up

ROWS = 1_000_000
KEYS = 700_000
MERGING = "select count(*) from pg_stat_activity where state = 'active' and query like 'MERGE%'"


def send(settings):
    with Producer(settings) as producer:
        for number in range(ROWS):
            producer.send(counts, Count(f"k{number % KEYS}", number, counters.NOW, id=str(number)))


def wait(check, what):
    deadline = time.monotonic() + 150
    while not check():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_kill_in_the_middle_of_a_large_merge(settings, tmp_path):
    place = replace(settings, data=tmp_path)
    apply([counts], Broker(place))
    send(place)
    driver = Driver(counting.name, str(Path(counters.__file__)), place)
    with psycopg.connect(reveal(place.postgres), autocommit=True) as database:
        driver.start()
        wait(lambda: database.execute(MERGING).fetchone() != (0,), "the merge did not begin")
        time.sleep(1)
        assert database.execute(MERGING).fetchone() == (1,)
        driver.kill()
        assert database.execute("select count(*) from large_counts").fetchone() == (0,)
        driver.start()
        try:
            wait_until_caught_up(counting, place, 300)
            assert driver.stop() == 0
        finally:
            driver.kill()
        found = database.execute("select count(*), sum(number), max(number) from large_counts").fetchone()
    last = [max(range(key, ROWS, KEYS)) for key in range(KEYS)]
    assert found == (KEYS, sum(last), ROWS - 1)
