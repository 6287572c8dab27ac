"""penstock demo enrichment."""

from penstock.apps.demo import Demo

demo = Demo(
    name="enrichment",
    title="Enrichment: events with the country of a captured table's row, through a kill -9",
    module="penstock.apps.enrichment.pipeline",
    work="penstock.apps.enrichment.work:Enrichment",
    rate=1000,
    next=(
        ("src/penstock/apps/enrichment/pipeline.py", "the flow"),
        ("src/penstock/apps/enrichment/README.md", "50 million rows on two cores"),
        ("docs/capture.md", "changes out of databases"),
    ),
)
command = demo.command()
