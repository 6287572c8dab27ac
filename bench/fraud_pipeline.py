"""The fraud application's flows with the checkpoint interval of a long run."""

from dataclasses import replace

from penstock.apps.fraud import pipeline as application
from penstock.pipeline import Pipeline

INTERVALS = {"realtime": "3 minutes", "stream": "30 seconds"}

fraud = Pipeline("fraud")
for name, flow in application.fraud.flows.items():
    fraud.flows[name] = replace(flow, checkpoint_interval=INTERVALS[flow.mode])
