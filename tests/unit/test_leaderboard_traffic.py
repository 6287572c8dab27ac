"""Games of many players, what they come to, and the functions that add them up."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import polars as pl

from penstock.apps.leaderboard.outcome import Answers, Outcome
from penstock.apps.leaderboard.pipeline import BEST, added, counted
from penstock.apps.leaderboard.traffic import Traffic

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
GAMES = {"player": pl.Int64, "points": pl.Int64, "at": pl.Datetime}
MOVES = {"width": pl.Int32, "level": pl.Int64, "by": pl.Int32}


def played(count, players=2_000):
    traffic = Traffic(players)
    return traffic, [*traffic.first_games(NOON), *(traffic.next(NOON) for _ in range(count))]


def cut(rows, seed=1):
    """Cut rows into calls of a random length."""
    random, place = Random(seed), 0
    while place < len(rows):
        length = random.randrange(1, 400)
        yield rows[place : place + length]
        place += length


def state_of(rows, kept, column):
    """The state as the operator gives it: a row for each key that is touched, null where there is none."""
    keys = rows.unique(maintain_order=True)
    return keys.with_columns(pl.Series(column, [kept.get(key) for key in keys.iter_rows()], pl.Int64))


def totals_of(games):
    """All totals of games, call by call."""
    kept, made = {}, []
    for each in cut(games):
        rows = pl.DataFrame(
            [(game.player, game.points, NOON.replace(tzinfo=None)) for game in each], GAMES, orient="row"
        )
        state, results = added(rows, state_of(rows.select("player"), kept, "points"))
        kept |= {(player,): points for player, points in state.iter_rows()}
        made += results.iter_rows(named=True)
    return {player: points for (player,), points in kept.items()}, made


def test_the_same_seed_gives_the_same_games_and_all_players_play():
    traffic, games = played(500)
    assert games == played(500)[1]
    assert len(traffic.points) == 2_000
    assert traffic.points.total() == sum(game.points for game in games)


def test_ranks_count_who_has_more_and_equal_players_share_one():
    traffic = Traffic(4)
    traffic.points = Counter({1: 5, 2: 9, 3: 5, 4: 1})
    assert traffic.ranks() == {1: 2, 2: 1, 3: 2, 4: 4}
    assert traffic.top(3) == {1: (2, 1, 9), 2: (3, 2, 5), 3: (1, 2, 5)}


def test_totals_are_right_however_games_are_cut_into_calls():
    traffic, games = played(3_000, players=300)
    totals, made = totals_of(games)
    assert totals == traffic.points
    last = {}
    for row in made:
        assert row["before"] == last.get(row["player"])
        last[row["player"]] = row["points"]


def test_levels_count_the_players_and_an_empty_one_is_deleted():
    traffic, games = played(3_000, players=300)
    moves = [
        (1, points, by)
        for row in totals_of(games)[1]
        for points, by in ((row["before"], -1), (row["points"], 1))
        if points is not None
    ]
    kept, table = {}, {}
    for each in cut(moves, seed=2):
        rows = pl.DataFrame(each, MOVES, orient="row")
        state, results = counted(rows, state_of(rows.select("width", "level"), kept, "players"))
        for key in rows.select("width", "level").iter_rows():
            kept.pop(key, None)
        kept |= {(width, level): players for width, level, players in state.iter_rows()}
        for width, level, players, deleted in results.iter_rows():
            table[width, level] = players
            if deleted:
                del table[width, level]
    assert table == kept == {(1, points): count for points, count in Counter(traffic.points.values()).items()}


def complete():
    traffic, _ = played(5_000)
    ranks = traffic.ranks()
    asked = Outcome.asked(traffic)
    return Outcome(
        traffic, Answers(traffic.top(BEST), dict(traffic.points), {player: ranks[player] for player in asked})
    )


def test_a_right_outcome_has_no_problems():
    assert complete().problems == []
    assert complete().report().complete


def test_every_wrong_outcome_has_a_problem():
    right = complete()
    answers = right.answers
    best, worst = Outcome.asked(right.traffic)[0], max(answers.ranks, key=answers.ranks.get)
    for wrong, what in (
        (replace(answers, top=answers.top | {1: answers.top[2]}), "best 100: 1 of"),
        (replace(answers, points=answers.points | {best: 0}), "players: 1 of"),
        (replace(answers, ranks=answers.ranks | {worst: 1}), "ranks: 1 of"),
        (Answers(), "players: 2,000 of"),
    ):
        problems = replace(right, answers=wrong).problems
        assert any(each.startswith(what) for each in problems), problems
