"""penstock demo platform, which `make demo` is."""

from penstock.apps.demo import Demo

demo = Demo(
    name="platform",
    title="The platform: capture, fraud in real time and a shop's views, through a kill -9",
    module="penstock.apps.platform.pipeline",
    work="penstock.apps.platform.work:Work",
    rate=200,
    seconds=20,
    spark={"spark.sql.shuffle.partitions": "1"},  # rows are few, and so are cores
    next=(
        ("penstock demo platform --serve", "keep it running, and see the same in the console, as it says"),
        ("penstock demo --help", "every other application, each with its own truth"),
        ("penstock demo fraud", "1,000 transactions a second, a model trained, latencies in full"),
        ("penstock demo shop --serve", "search index, cache and lake beside the table, until Ctrl-C"),
        ("src/penstock/apps/fraud/pipeline.py", "what a pipeline looks like"),
        ("docs/install.md", "a pipeline of your own, in 30 lines"),
    ),
)
command = demo.command()
