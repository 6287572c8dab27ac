"""penstock metrics: serve the system's figures to Prometheus, with a dashboard and alerts for them."""

from importlib.resources import files
from typing import Annotated

import typer

from penstock.cli.output import console
from penstock.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("metrics")(metrics)


def metrics(
    port: Annotated[int, typer.Option(help="Where to listen.")] = 9477,
    host: Annotated[
        str, typer.Option(help="Any but loopback needs a token (PENSTOCK_METRICS_TOKEN).")
    ] = "127.0.0.1",
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Print a dashboard for Grafana, and end.")
    ] = False,
    alerts: Annotated[
        bool, typer.Option("--alerts", help="Print alert rules for Prometheus, and end.")
    ] = False,
) -> None:
    """Serve the metrics of the whole system to Prometheus, under /metrics, until Ctrl-C.

    Example: penstock metrics --port 9477
    """
    if dashboard or alerts:
        name = "grafana/dashboard.json" if dashboard else "prometheus/alerts.yml"
        typer.echo(files("penstock.ops").joinpath(name).read_text(), nl=False)
        return
    from penstock.ops.metrics_server import checked_token, serve

    settings = Settings.load()
    checked_token(settings, host)
    console.print(f"metrics on http://{host}:{port}/metrics; Ctrl-C ends it", highlight=False)
    serve(settings, host=host, port=port)
