"""The leaderboard: totals, the best players and ranks equal to the truth, and through a kill -9."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import psycopg
import pytest
from tests import quick

from penstock.apps.demo.demo import STAGES, Plan
from penstock.apps.demo.run import run
from penstock.apps.demo.status import RunStatus
from penstock.apps.leaderboard.command import demo
from penstock.apps.leaderboard.events import games, totals
from penstock.apps.leaderboard.pipeline import WIDTHS, add_up, top
from penstock.apps.leaderboard.rank import Rank, rank_of
from penstock.apps.leaderboard.traffic import Traffic
from penstock.local import running
from penstock.testing.topic_rows import TopicRows

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def as_batch(spark, topic, events):
    rows = TopicRows(topic)
    made = [rows.row(each) for each in events]
    return spark.createDataFrame(
        [tuple(row[name] for name in rows.schema.names) for row in made], rows.schema
    )


def test_totals_and_the_best_players_are_those_of_the_truth(spark):
    traffic = Traffic(400)
    played = [*traffic.first_games(NOON), *(traffic.next(NOON) for _ in range(300))]
    added_up = add_up(as_batch(spark, games, played)).collect()
    assert {row.player: row.points for row in added_up} == traffic.points
    sent = [totals.event(row.player, row.before, row.points, NOON) for row in added_up]
    best = {
        row.place: (row.player, row.rank, row.points) for row in top(as_batch(spark, totals, sent)).collect()
    }
    assert best == traffic.top(100)


def test_a_rank_is_counted_by_levels(settings):
    players = {1: 5, 2: 999, 3: 1_000, 4: 1_001, 5: 2_500, 6: 2_500, 7: 0}
    traffic = Traffic(1)
    traffic.points.update(players)
    with psycopg.connect(settings.dsn().value) as connection:
        connection.execute("CREATE TEMP TABLE leaderboard_players (player bigint, points bigint)")
        connection.execute("CREATE TEMP TABLE leaderboard_levels (width int, level bigint, players bigint)")
        for player, points in players.items():
            connection.execute("INSERT INTO leaderboard_players VALUES (%s, %s)", [player, points])
        for width in WIDTHS:
            for level, count in Counter(points // width for points in players.values()).items():
                connection.execute(
                    "INSERT INTO leaderboard_levels VALUES (%s, %s, %s)", [width, level, count]
                )
        ranks = traffic.ranks()
        for player, points in players.items():
            assert rank_of(connection, player) == Rank(player, points, ranks[player])
        assert rank_of(connection, 8) is None


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_demo_is_complete_through_a_kill():
    with running() as settings:
        report = run(demo, Plan(100, 8), RunStatus(STAGES), replace(settings, spark=quick.SPARK))
    assert report.complete, report.problems
