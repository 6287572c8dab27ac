"""Where users were, and when; and who moves."""

from datetime import UTC, datetime

from penstock.apps.enrichment.history import History
from penstock.apps.enrichment.traffic import COUNTRIES, USERS, Move, Traffic, first_country

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def moved(*moves):
    history = History()
    for country, moment in moves:
        history.add(Move(3, country), moment)
    return history


def test_a_user_has_had_all_countries_until_a_moment():
    history = moved(("AT", 10.0), (None, 20.0))
    assert history.until(3, 5.0) == {first_country(3)}
    assert history.until(3, 10.0) == {first_country(3), "AT"}
    assert history.until(3, 99.0) == {first_country(3), "AT", None}
    assert history.until(USERS + 1, 99.0) == {None}


def test_a_country_is_stale_since_the_user_has_left_it():
    history = moved(("AT", 10.0), ("BR", 20.0), ("CA", 50.0))
    assert history.staleness(3, first_country(3), 12.0) == 2.0
    assert history.staleness(3, "AT", 25.0) == 5.0
    assert history.staleness(3, "BR", 25.0) == 0.0
    assert history.staleness(3, "CA", 25.0) == 0.0  # the result came after the move


def test_a_country_to_which_somebody_came_back_is_not_stale():
    history = moved(("AT", 10.0), ("BR", 20.0), ("AT", 30.0))
    assert history.staleness(3, "AT", 25.0) == 0.0
    assert history.staleness(3, "BR", 32.0) == 2.0


def test_some_leave_some_come_back_and_some_are_unknown():
    traffic = Traffic(seed=6)
    moves = [traffic.move() for _ in range(5_000)]
    assert sum(move.country is None for move in moves) > 20
    assert len(traffic.last) < len(moves)
    assert {move.country for move in moves} == {None, *COUNTRIES}
    events = [traffic.next(NOW) for _ in range(5_000)]
    assert any(first_country(event.user_id) is None for event in events)
    assert sum(event.user_id in traffic.last for event in events) > 1_000


def test_in_the_end_everybody_who_has_moved_does_something():
    traffic = Traffic()
    moves = [traffic.move() for _ in range(100)]
    last = [*traffic.final(NOW)]
    assert {event.user_id for event in last} == {move.user_id for move in moves}
    assert len({event.id for event in last}) == len(last)
    assert traffic.country(moves[-1].user_id) == moves[-1].country
