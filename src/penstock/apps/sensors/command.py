"""penstock demo sensors."""

from penstock.apps.demo import Demo

demo = Demo(
    name="sensors",
    title="Sensors: hot and silent machines behind gateways that are cut off, through a kill -9",
    module="penstock.apps.sensors.pipeline",
    work="penstock.apps.sensors.work:Sensors",
    rate=300,
    services=("kafka",),
    next=(
        ("src/penstock/apps/sensors/pipeline.py", "the two flows"),
        ("docs/keyed.md", "recent events, patterns, and what did not come"),
        ("docs/windows.md", "watermarks over declared sources"),
    ),
)
command = demo.command()
