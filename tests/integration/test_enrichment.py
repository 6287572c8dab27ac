"""The enrichment application: events with the country of their user."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests import quick

from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.apps.enrichment.command import demo
from penstock.apps.enrichment.events import User, activity, users
from penstock.apps.enrichment.pipeline import with_country
from penstock.apps.enrichment.traffic import Traffic, first_country
from penstock.local import running
from penstock.testing import Feed, Sent, Tombstone

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_events_have_the_country_that_their_user_has(spark):
    traffic = Traffic()
    before = [traffic.next(NOW) for _ in range(300)]
    known = {event.user_id for event in before if first_country(event.user_id)}
    rows = [_change(user, first_country(user)) for user in known]
    with Feed(spark, with_country, output="update", activity=activity, users=users) as feed:
        feed.send(users=rows)
        first = feed.send(activity=before)
        moves = [traffic.move() for _ in range(200)]
        feed.send(users=[_change(user, country) for user, country in traffic.last.items()])
        last = feed.send(activity=[*traffic.final(NOW)])
    assert {row.id: row.country for row in first} == {e.id: first_country(e.user_id) for e in before}
    assert {row.user_id: row.country for row in last} == traffic.last
    assert len(last) == len(traffic.last) <= len(moves)


def _change(user, country):
    return Tombstone(user) if country is None else Sent(User(user, country, id=str(user)), written=NOW)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_through_a_kill_all_events_have_a_country_of_their_user():
    with running(services=demo.services) as settings:
        plan = Plan(rate=300, seconds=5, after=2, patience=300)
        report = run(demo, plan, RunStatus(STAGES), replace(settings, spark=quick.SPARK))
    assert report.complete, report.problems
