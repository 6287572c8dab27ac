"""penstock demo sessions."""

from penstock.apps.demo import Demo

demo = Demo(
    name="sessions",
    title="Sessions: visits that late views correct, through a kill -9",
    module="penstock.apps.sessions.pipeline",
    work="penstock.apps.sessions.work:Sessions",
    rate=300,
    next=(
        ("src/penstock/apps/sessions/pipeline.py", "the two flows"),
        ("docs/windows.md", "late policies, watermarks, retractions"),
    ),
)
command = demo.command()
