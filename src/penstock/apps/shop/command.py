"""penstock demo shop."""

from penstock.apps.demo import Demo

demo = Demo(
    name="shop",
    title="The shop: a captured database, an order view, its copies and three services, through a kill -9",
    module="penstock.apps.shop.pipeline",
    work="penstock.apps.shop.work:Work",
    rate=30,
    services=("kafka", "postgres", "redis"),
    spark={"spark.sql.shuffle.partitions": "1"},  # state in one part, and one writer: rows are few
    next=(
        ("src/penstock/apps/shop/pipeline.py", "the seven flows, in 100 lines"),
        ("docs/how-to/outbox.md", "why an event is a row of the database first"),
        ("penstock demo shop --serve", "the same, until Ctrl-C"),
    ),
)
command = demo.command()
