"""penstock demo pageviews."""

from penstock.apps.demo import Demo

demo = Demo(
    "pageviews",
    "Page views: by the minute, exactly, corrected by phones that come late; and the top ten now",
    module="penstock.apps.pageviews.pipeline",
    work="penstock.apps.pageviews.work:SiteWork",
    rate=300,
    seconds=20,
    next=(
        ("penstock demo pageviews --serve", "keep it running, and look at it in a browser"),
        ("src/penstock/apps/pageviews", "the whole application: start your own from it"),
        ("docs/windows.md", "windows, watermarks and what becomes of late events"),
    ),
)
command = demo.command()
