"""penstock demo ads."""

from penstock.apps.demo import Demo

demo = Demo(
    name="ads",
    title="Ads: impressions, the clicks of the hour after them, and click-through, through a kill -9",
    module="penstock.apps.ads.pipeline",
    work="penstock.apps.ads.work:Ads",
    rate=500,
    next=(
        ("src/penstock/apps/ads/pipeline.py", "the two flows"),
        ("src/penstock/apps/ads/README.md", "state and memory for 10 million impressions an hour"),
    ),
)
command = demo.command()
