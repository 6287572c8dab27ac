"""Runs against a dictionary: keys of the same hash, keys without a value, what is gone and comes back."""

from random import Random

import polars as pl
import pytest

from penstock.process.state.runs import GONE, HASH, find, find_all, first_to_merge, merged

BY = ["card", "shop"]
SCHEMA = {HASH: pl.Int64, GONE: pl.Boolean, "card": pl.String, "shop": pl.Int64, "n": pl.Int64}


def run_of(rows, hashes):
    made = [
        (sum(map(ord, str(key))) % hashes, n is None, *key, n)  # few hashes, so that many keys share one
        for key, n in rows.items()
    ]
    return pl.DataFrame(made, SCHEMA, orient="row").sort(HASH)


def found(runs, wanted, hashes):
    keys = run_of(dict.fromkeys(wanted), hashes).select(HASH, *BY).sample(fraction=1, shuffle=True, seed=1)
    return {(card, shop): n for card, shop, n in find(runs, keys, BY).select(*BY, "n").rows()}


@pytest.mark.parametrize("hashes", [1, 3, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_the_newest_row_of_every_key_is_found(seed, hashes):
    random = Random(seed)
    keys = [(card, shop) for card in (None, "a", "b", "ü") for shop in (None, *range(8))]
    runs, known = [run_of({}, hashes)], {}
    for _ in range(30):
        touched = random.sample(keys, random.randrange(1, 12))
        changed = {key: None if random.random() < 0.3 else random.randrange(100) for key in touched}
        known |= changed
        runs.append(run_of(changed, hashes))
        first = first_to_merge([run.height for run in runs], patience=1 + random.random())
        runs[first:] = [merged(runs[first:], BY, whole=first == 0)]
        assert found(runs, keys, hashes) == {key: n for key, n in known.items() if n is not None}
        assert all(run[HASH].is_sorted() for run in runs)


def test_what_is_gone_is_left_out_of_the_whole_only():
    runs = [run_of({("a", 1): 1, ("b", 1): 2}, 3), run_of({("a", 1): None}, 3)]
    assert merged(runs, BY, whole=False).height == 2
    assert merged(runs, BY, whole=True)["card"].to_list() == ["b"]


def test_few_runs_stay_and_rows_are_seldom_written_again():
    lengths, written = [], 0
    for _ in range(10_000):
        lengths.append(10)
        first = first_to_merge(lengths)
        lengths[first:] = [sum(lengths[first:])]
        written += lengths[-1]
        assert len(lengths) < 17
    assert written < 17 * 100_000


def rows_of(rows, hashes):
    """Several rows of a card: the upper half of a hash is the card's, the lower half the row's."""
    made = [
        ((sum(map(ord, str(card))) % hashes) << 32 | (shop or 0) % hashes, n is None, card, shop, n)
        for (card, shop), n in rows.items()
    ]
    return pl.DataFrame(made, SCHEMA, orient="row").sort(HASH)


@pytest.mark.parametrize("hashes", [1, 3, 1000])
@pytest.mark.parametrize("seed", range(5))
def test_all_rows_of_a_key_are_found(seed, hashes):
    random = Random(seed)
    rows = [(card, shop) for card in (None, "a", "b", "ü") for shop in (None, *range(8))]
    runs, known = [rows_of({}, hashes)], {}
    for _ in range(30):
        touched = random.sample(rows, random.randrange(1, 12))
        changed = {row: None if random.random() < 0.3 else random.randrange(100) for row in touched}
        known |= changed
        runs.append(rows_of(changed, hashes))
        first = first_to_merge([run.height for run in runs], patience=1 + random.random())
        runs[first:] = [merged(runs[first:], BY, whole=first == 0)]
        cards = random.sample([None, "a", "b", "ü", "nobody"], 3)
        keys = rows_of({(card, random.randrange(8)): 0 for card in cards}, hashes)
        found = find_all(runs, keys, ["card"], ["shop"])
        assert sorted(found.select(*BY, "n").rows(), key=str) == sorted(
            ((*row, n) for row, n in known.items() if n is not None and row[0] in cards), key=str
        )
