"""What Nexmark's queries have to answer, computed by DuckDB: independent of any streaming engine.

Windows are half-open, [start, end), and aligned to the epoch in UTC; hopping windows include those that
begin before the first event. Days and minutes are those of UTC.
"""

import duckdb
import polars as pl
import polars.selectors as cs
import pyarrow as pa

from bench.nexmark.events import Nexmark

RANKS = {
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}
AT = '"at"'  # bare, it is a word of DuckDB's grammar
DAY = f"strftime({AT}, '%Y-%m-%d')"


def _window(time: str, seconds: int = 10) -> str:
    return f"time_bucket(INTERVAL {seconds} SECOND, {time}, TIMESTAMP '1970-01-01')"


def _counts(what: str, name: str) -> str:
    """Count in total and by price rank."""
    ranks = [f"count({what}) FILTER (WHERE {which}) AS {rank}_{name}" for rank, which in RANKS.items()]
    return ", ".join([f"count({what}) AS total_{name}", *ranks])


BIDS_BIDDERS_AUCTIONS = ", ".join(
    [_counts("*", "bids"), _counts("DISTINCT bidder", "bidders"), _counts("DISTINCT auction", "auctions")]
)

# The auctions with the most bids of each window of 10 s, a window every 2 s; all of them if several tie.
Q5 = f"""
    WITH hops AS (
        SELECT auction, {_window(AT, 2)} - hop * INTERVAL 2 SECOND AS window_start
        FROM bids CROSS JOIN range(5) AS hops(hop)
    )
    SELECT window_start, window_start + INTERVAL 10 SECOND AS window_end, auction, count(*) AS bids
    FROM hops
    GROUP BY window_start, auction
    QUALIFY bids = max(bids) OVER (PARTITION BY window_start)
    ORDER BY window_start, auction
"""

# The bids of the highest price of each window; all of them if several tie. A bid at a window's end is in
# the next window only, where the benchmark's own SQL would let it in if it has the same price.
Q7 = f"""
    WITH placed AS (SELECT *, {_window(AT)} AS window_start FROM bids),
    highest AS (SELECT window_start, max(price) AS price FROM placed GROUP BY window_start)
    SELECT window_start, window_start + INTERVAL 10 SECOND AS window_end,
        auction, bidder, price, "at", extra, n
    FROM placed JOIN highest USING (window_start, price)
    ORDER BY window_start, n
"""

# The people who sold something in the window in which they came; once each, however much they sold.
Q8 = f"""
    WITH came AS (SELECT DISTINCT {_window(AT)} AS window_start, id, name FROM persons),
    sold AS (SELECT DISTINCT {_window(AT)} AS window_start, seller AS id FROM auctions)
    SELECT window_start, window_start + INTERVAL 10 SECOND AS window_end, id, name
    FROM came JOIN sold USING (window_start, id)
    ORDER BY window_start, id
"""

# Two bids of a bidder are of one session if they are at most 10 s apart: at exactly 10 s the sessions
# touch, and touching sessions merge. A session ends 10 s after its last bid.
Q11 = """
    WITH gaps AS (
        SELECT bidder, "at", "at" - lag("at") OVER (PARTITION BY bidder ORDER BY "at") AS gap
        FROM bids
    ),
    numbered AS (
        SELECT bidder, "at",
            count(*) FILTER (WHERE gap > INTERVAL 10 SECOND)
                OVER (PARTITION BY bidder ORDER BY "at") AS session
        FROM gaps
    )
    SELECT bidder, min("at") AS session_start, max("at") + INTERVAL 10 SECOND AS session_end, count(*) AS bids
    FROM numbered
    GROUP BY bidder, session
    ORDER BY bidder, session_start
"""

# Processing time is what the caller says it was: the column `arrived` of the bids.
Q12 = f"""
    SELECT {_window("arrived")} AS window_start, window_start + INTERVAL 10 SECOND AS window_end,
        bidder, count(*) AS bids
    FROM bids
    GROUP BY window_start, bidder
    ORDER BY window_start, bidder
"""

Q15 = f"""
    SELECT {DAY} AS day, {BIDS_BIDDERS_AUCTIONS}
    FROM bids
    GROUP BY day
    ORDER BY day
"""

# The latest minute is the greatest HH:mm among the channel's bids of the day.
Q16 = f"""
    SELECT channel, {DAY} AS day, max(strftime("at", '%H:%M')) AS minute, {BIDS_BIDDERS_AUCTIONS}
    FROM bids
    GROUP BY channel, day
    ORDER BY channel, day
"""

# The average is a float: the exact sum divided once by the count.
Q17 = f"""
    SELECT auction, {DAY} AS day, {_counts("*", "bids")},
        min(price) AS min_price, max(price) AS max_price,
        sum(price)::BIGINT / count(*) AS avg_price, sum(price)::BIGINT AS sum_price
    FROM bids
    GROUP BY auction, day
    ORDER BY auction, day
"""

# The last bid by event time; of bids at the same time, the one that arrived last.
Q18 = """
    SELECT bidder, auction, price, channel, url, "at", extra, n
    FROM bids
    QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY "at" DESC, n DESC) = 1
    ORDER BY bidder, auction
"""

# Of bids of the same price, the one that arrived first has the better rank.
Q19 = """
    SELECT auction, row_number() OVER (PARTITION BY auction ORDER BY price DESC, n) AS rank,
        bidder, price, channel, url, "at", extra, n
    FROM bids
    QUALIFY rank <= 10
    ORDER BY auction, rank
"""

Q3 = """
    SELECT p.name, p.city, p.state, a.id
    FROM auctions a JOIN persons p ON a.seller = p.id
    WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
    ORDER BY ALL
"""

IN_LIFE = """
    FROM auctions a JOIN bids b ON b.auction = a.id AND b."at" BETWEEN a."at" AND a.expires
"""

Q4 = f"""
    WITH best AS (SELECT a.id, a.category, max(b.price) AS price {IN_LIFE} GROUP BY a.id, a.category)
    SELECT category, sum(price)::BIGINT / count(*) AS average FROM best GROUP BY category ORDER BY category
"""

# The highest bid of an auction; of equal ones the earliest, and of those the one that arrived first.
Q9 = f"""
    SELECT a.id AS auction, b.bidder, b.price, b."at" AS bid_at, b.n {IN_LIFE}
    QUALIFY row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b."at", b.n) = 1
    ORDER BY auction
"""

Q13 = """
    SELECT auction, bidder, price, "at", n, 'side-' || (auction % 10000) AS value FROM bids ORDER BY n
"""

Q20 = """
    SELECT b.n, b.bidder, b.price, a.id, a.item, a.seller
    FROM bids b JOIN auctions a ON b.auction = a.id
    WHERE a.category = 10
    ORDER BY b.n
"""

QUERIES = {
    "q3": Q3,
    "q4": Q4,
    "q9": Q9,
    "q13": Q13,
    "q20": Q20,
    "q5": Q5,
    "q7": Q7,
    "q8": Q8,
    "q11": Q11,
    "q12": Q12,
    "q15": Q15,
    "q16": Q16,
    "q17": Q17,
    "q18": Q18,
    "q19": Q19,
}


def answer(name: str, data: Nexmark) -> pl.DataFrame:
    """Return all rows a query has to give for these events, sorted; times are in UTC.

    q12 counts by processing time, which no events hold: append it to `data.bids` as the column `arrived`.
    """
    if name not in QUERIES:
        raise ValueError(f"no reference for {name}; there are {', '.join(QUERIES)}")
    if name == "q12" and "arrived" not in data.bids.column_names:
        raise ValueError("q12 needs the processing time of the bids; append it to them as `arrived`")
    with duckdb.connect() as connection:
        for view in ("persons", "auctions", "bids"):
            connection.register(view, _without_zone(getattr(data, view)))
        found = connection.sql(QUERIES[name]).pl()
    return found.with_columns(cs.datetime().dt.replace_time_zone("UTC"))


def _without_zone(table: pa.Table) -> pa.Table:
    """Keep instants as plain timestamps of UTC, so that no session's time zone has a say."""
    plain = [
        field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(plain))
