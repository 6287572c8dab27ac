"""Random writes and kills, for a minute; `python -m tests.capture` goes on for twenty."""

import pytest

from tests.capture.campaign import run_campaign
from tests.mariadb_server import require_mariadb


@pytest.mark.timeout(400)
@pytest.mark.parametrize("database", ["postgres", pytest.param("mariadb", marks=pytest.mark.long)])
def test_nothing_is_lost_or_doubled_whatever_is_killed(tmp_path, database):
    if database == "mariadb":
        require_mariadb()
    outcome = run_campaign(tmp_path, seed=20261117, seconds=15, rows=1500, database=database)
    assert outcome.wrong == [], (tmp_path / "capture-shop.log").read_text()[-3000:]
    assert len(outcome.faults) >= 2
    assert outcome.transactions > 100
