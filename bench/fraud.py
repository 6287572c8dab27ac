"""Fraud in real time for three minutes: the demo's flows, with fewer checkpoints and measured for longer."""

from bench.fraud_pipeline import CHECKPOINT_INTERVAL
from penstock.apps.fraud.demo import run_alone
from penstock.apps.fraud.described import described
from penstock.apps.fraud.plan import Plan
from penstock.apps.fraud.screen import screen
from penstock.apps.fraud.status import Status
from penstock.cli.output import console

PLAN = Plan(
    seconds=185, after=10, settled=15, settled_within=120
)  # each flow in real time has one checkpoint in it


def main() -> None:
    status = Status()
    with screen(status, console):
        status.enter("services")
        report = run_alone(PLAN, status, module="bench.fraud_pipeline")
    console.print(described(report, CHECKPOINT_INTERVAL, status.seconds))
