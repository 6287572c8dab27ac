"""penstock demo notifications."""

from penstock.apps.demo import Demo

demo = Demo(
    name="notifications",
    title="Notifications: asked for by three services, delivered once, through a kill -9",
    module="penstock.apps.notifications.pipeline",
    work="penstock.apps.notifications.work:Notifications",
    rate=100,
    services=("kafka",),
    next=(
        ("src/penstock/apps/notifications/pipeline.py", "the two flows"),
        ("docs/targets/webhooks.md", "retries, the circuit, dead letters"),
    ),
)
command = demo.command()
