"""penstock demo trending."""

from penstock.apps.demo import Demo

demo = Demo(
    "trending",
    "Trending: the hashtags that rise most above their own last hour, ranked anew every five seconds",
    module="penstock.apps.trending.pipeline",
    work="penstock.apps.trending.work:PostsWork",
    rate=50,
    seconds=25,
    services=("kafka",),
    next=(
        ("penstock demo trending --serve", "keep it running"),
        ("src/penstock/apps/trending", "the whole application: start your own from it"),
        ("docs/windows.md", "rankings, and windows that hop or touch"),
    ),
)
command = demo.command()
