"""Flows described, then run in three modes."""

from typing import TYPE_CHECKING

from penstock.on_demand import on_demand

if TYPE_CHECKING:
    from penstock.pipeline.conservation import Conservation
    from penstock.pipeline.flow import Flow
    from penstock.pipeline.forgetting import forget
    from penstock.pipeline.pipeline import Pipeline
    from penstock.pipeline.progress import Progress, ProgressStore
    from penstock.pipeline.rebuilding import Rebuilt, rebuild
    from penstock.pipeline.runner import Runner
    from penstock.pipeline.stored import Stored, stored_state
    from penstock.pipeline.verification import Verification, verify

__all__ = [
    "Conservation",
    "Flow",
    "Pipeline",
    "Progress",
    "ProgressStore",
    "Rebuilt",
    "Runner",
    "Stored",
    "Verification",
    "forget",
    "rebuild",
    "stored_state",
    "verify",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "Conservation": "conservation",
        "Flow": "flow",
        "Pipeline": "pipeline",
        "Progress": "progress",
        "ProgressStore": "progress",
        "Rebuilt": "rebuilding",
        "Runner": "runner",
        "Stored": "stored",
        "Verification": "verification",
        "forget": "forgetting",
        "rebuild": "rebuilding",
        "stored_state": "stored",
        "verify": "verification",
    },
)
