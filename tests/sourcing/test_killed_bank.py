"""All between commands and views is killed for a minute; `python -m tests.sourcing` goes on for ten."""

import pytest

from tests.sourcing.campaign import run_campaign


@pytest.mark.long
@pytest.mark.timeout(900)
def test_views_and_topics_are_what_the_log_gives_whatever_is_killed(tmp_path):
    outcome = run_campaign(tmp_path, seed=20261118, seconds=75)
    assert outcome.wrong == [], "\n".join(each.read_text()[-2000:] for each in tmp_path.glob("*.log"))
    assert len(outcome.faults) >= 8
    assert outcome.transactions > 500
