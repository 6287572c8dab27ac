"""penstock demo trades."""

from penstock.apps.demo import Demo

demo = Demo(
    name="trades",
    title="Trades: quotes of their moment, and average prices that are corrected, through a kill -9",
    module="penstock.apps.trades.pipeline",
    work="penstock.apps.trades.work:Trades",
    rate=300,
    next=(
        ("src/penstock/apps/trades/pipeline.py", "the three flows"),
        ("docs/joins.md", "as-of joins, and what comes first"),
        ("docs/keyed.md", "state of your own"),
    ),
)
command = demo.command()
