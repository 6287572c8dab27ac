"""Flows described, then run in three modes."""

from typing import TYPE_CHECKING

from penstock.on_demand import on_demand

if TYPE_CHECKING:
    from penstock.pipeline.conservation import Conservation
    from penstock.pipeline.difference import Difference
    from penstock.pipeline.diffing import diff
    from penstock.pipeline.flow import Flow
    from penstock.pipeline.forgetting import forget
    from penstock.pipeline.pipeline import Pipeline
    from penstock.pipeline.progress import Progress, ProgressStore
    from penstock.pipeline.projection import Projection
    from penstock.pipeline.rebuilding import Rebuilt, rebuild
    from penstock.pipeline.runner import Runner
    from penstock.pipeline.shadowing import discard_shadow, shadow
    from penstock.pipeline.snapshotting import snapshot
    from penstock.pipeline.stored import Stored, stored_state
    from penstock.pipeline.swapping import Swapped, rollback, swap
    from penstock.pipeline.trial import Trial, try_on_history
    from penstock.pipeline.verification import Verification, verify

__all__ = [
    "Conservation",
    "Difference",
    "Flow",
    "Pipeline",
    "Progress",
    "ProgressStore",
    "Projection",
    "Rebuilt",
    "Runner",
    "Stored",
    "Swapped",
    "Trial",
    "Verification",
    "diff",
    "discard_shadow",
    "forget",
    "rebuild",
    "rollback",
    "shadow",
    "snapshot",
    "stored_state",
    "swap",
    "try_on_history",
    "verify",
]

__getattr__, __dir__ = on_demand(
    __name__,
    {
        "Conservation": "conservation",
        "Difference": "difference",
        "Flow": "flow",
        "Pipeline": "pipeline",
        "Progress": "progress",
        "ProgressStore": "progress",
        "Projection": "projection",
        "Rebuilt": "rebuilding",
        "Runner": "runner",
        "Stored": "stored",
        "Swapped": "swapping",
        "Trial": "trial",
        "Verification": "verification",
        "diff": "diffing",
        "discard_shadow": "shadowing",
        "forget": "forgetting",
        "rebuild": "rebuilding",
        "rollback": "swapping",
        "shadow": "shadowing",
        "snapshot": "snapshotting",
        "stored_state": "stored",
        "swap": "swapping",
        "try_on_history": "trial",
        "verify": "verification",
    },
)
