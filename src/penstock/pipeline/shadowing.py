"""A shadow: a new version of a flow that runs beside the one at work, with a target of its own."""

from dataclasses import replace

from pyspark.sql import SparkSession

from penstock.errors import FlowError
from penstock.pipeline.flow_status import forget_status
from penstock.pipeline.generation import Generation
from penstock.pipeline.job import Job
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.runner import chosen
from penstock.pipeline.versions import Versions
from penstock.pipeline.whole_log import IN_KAFKA, refuse_lost
from penstock.points import reach
from penstock.settings import Settings
from penstock.targets.side_outputs import TargetWithSideOutputs


def shadow(
    pipeline: Pipeline, flow: str, settings: Settings, spark: SparkSession, *, partial: bool = False
) -> Job:
    """Return the job that runs a flow in the shadow of the one at work, for a `Runner`.

        with Runner(shop, settings, jobs=[shadow(shop, "large", settings, spark)], spark=spark) as runner:
            runner.wait()

    It reads from the beginning of the log, or goes on where it was; its target and its checkpoint are its
    own. With `partial`, events that are not in the log any more are done without.
    """
    return _begun(Versions(pipeline, chosen(pipeline, [flow])[0], settings, spark), partial=partial)


def discard_shadow(pipeline: Pipeline, flow: str, settings: Settings, spark: SparkSession) -> bool:
    """Give up a flow's shadow, or a rebuild that is under way: what it has made is removed.

    False if there was none. The shadow must not run. Interrupted, the next call completes it.
    """
    versions = Versions(pipeline, chosen(pipeline, [flow])[0], settings, spark)
    with versions.alone():
        return _discarded(versions)


def _discarded(versions: Versions) -> bool:
    """It is noted first: nobody goes on with what is there in part."""
    generations = versions.generations
    known = generations.read_for()
    number = known.building
    if number is None:
        return False
    noted = replace(known, discarding=True)
    generations.write(noted, known)
    reach("discard.begun", versions.label)
    versions.forget(number)
    reach("discard.forgotten", versions.label)
    versions.beside(number).remove(versions.settings)
    reach("discard.removed", versions.label)
    generations.write(noted.without_rebuild(), noted)
    forget_status(versions.settings, generations.of(number))
    return True


def refuse_no_shadow(versions: Versions, known: Generation) -> int:
    """Return the number of the shadow, or say that there is none."""
    versions.generations.refuse_discarding(known)
    if known.building is None or not known.shadow:
        raise FlowError(
            f"flow {versions.label!r} has no shadow", hint=f"begin one: `penstock shadow {versions.command}`"
        )
    return known.building


def refuse_other_version(versions: Versions, known: Generation) -> None:
    """Refuse a shadow that was made by code that gives other columns, or says that it is another version."""
    if known.made_by != versions.made_by:
        raise FlowError(
            f"the shadow of {versions.label!r} was made by another version or with other columns: "
            f"{_difference(known.made_by, versions.made_by)}",
            hint="name the module that the shadow runs with, or give it up and begin a new one: "
            f"`penstock shadow {versions.command} --discard`, then the same without --discard",
        )


def _begun(versions: Versions, *, partial: bool) -> Job:
    refuse_unfit(versions)
    known = versions.generations.read_for()
    versions.generations.refuse_discarding(known)
    if known.building is None:
        refuse_lost(versions.flow, versions.settings, partial=partial)
        before, known = known, known.begun("", versions.made_by, shadow=True)
        versions.generations.write(known, before)
    if not known.shadow:
        raise FlowError(
            f"a rebuild of {versions.label!r} is under way",
            hint=f"complete it with `penstock rebuild {versions.command}`, or give it up: "
            f"`penstock shadow {versions.command} --discard`",
        )
    refuse_other_version(versions, known)
    job = versions.shadow_job(known.building or 0)
    options = {**IN_KAFKA, **job.flow.options} if partial else job.flow.options
    return replace(job, flow=replace(job.flow, options=options))


def refuse_unfit(versions: Versions) -> None:
    """Refuse a flow that can't have a shadow, with the reason."""
    flow, target = versions.flow, versions.target
    if isinstance(target, TargetWithSideOutputs):
        raise FlowError(
            f"flow {versions.label!r} writes a {type(target.target).__name__} and side outputs, which would "
            "have to change hands in one step",
            hint="let it write a topic with its side outputs, and a second flow bring that to the target",
        )
    target.beside("g1")  # a target without it says why
    others = [each for each in versions.pipeline.flows.values() if each.name != flow.name]
    sharing = next((each.name for each in others if each.target == target), None)
    if sharing is not None:
        raise FlowError(
            f"flows {flow.name!r} and {sharing!r} write the same target: a shadow of one would lack the rows "
            "of the other",
            hint="give each flow a target of its own",
        )


def _difference(before: str, after: str) -> str:
    return f"it was {before!r}, and is {after!r}"
