"""The fraud application's flows, those in real time with the checkpoint interval of a long run."""

from dataclasses import replace

from penstock.apps.fraud import pipeline as application
from penstock.pipeline import Pipeline

CHECKPOINT_INTERVAL = "3 minutes"

fraud = Pipeline("fraud")
for name, flow in application.fraud.flows.items():
    changed = replace(flow, checkpoint_interval=CHECKPOINT_INTERVAL)
    fraud.flows[name] = changed if flow.mode == "realtime" else flow
