"""Swapping: a flow's shadow takes the place of the version at work, and back."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from penstock.errors import ConfigurationError, FlowError, TargetError
from penstock.log import Groups
from penstock.log.ledger import Entry, Offsets
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.difference import Difference
from penstock.pipeline.diffing import Compared, compared
from penstock.pipeline.flow_run import Reporter, warned
from penstock.pipeline.flow_status import forget_status
from penstock.pipeline.generation import Generation
from penstock.pipeline.job import Cut
from penstock.pipeline.pinning import PASSED, PATTERN, refuse_other_watermark
from penstock.pipeline.pipeline import Pipeline
from penstock.pipeline.reported import Reported
from penstock.pipeline.runner import chosen
from penstock.pipeline.shadowing import refuse_no_shadow, refuse_other_version
from penstock.pipeline.trouble import one_line
from penstock.pipeline.versions import Standing, Versions, furthest
from penstock.points import reach
from penstock.settings import Settings
from penstock.targets.sink import Sink


@dataclass(frozen=True)
class Swapped:
    """What a swap has done; `difference` is what was found before, if it was asked for."""

    flow: str
    swapped: bool
    position: Offsets
    difference: Difference | None = None


def swap(
    pipeline: Pipeline,
    flow: str,
    settings: Settings,
    spark: SparkSession,
    *,
    at_most: int | None = None,
    by: tuple[str, ...] = (),
    ignore: tuple[str, ...] = (),
    may_swap: Callable[[], bool] = lambda: True,
    report: Reporter = warned,
) -> Swapped:
    """Put a flow's shadow in the place of the version at work, from where that one stands in the log.

    The version at work is shut out first; `may_swap` is asked before. The shadow is then brought up to the
    same position, to the offset. With `at_most`, both are compared there, and with more differences than
    that nothing is swapped: the version at work goes on when it is started. Interrupted, the next call
    completes it.
    """
    versions = Versions(pipeline, chosen(pipeline, [flow])[0], settings, spark, report)
    with versions.alone():
        return _Swap(versions).swap(at_most, Compared(by, ignore), may_swap)


def rollback(
    pipeline: Pipeline,
    flow: str,
    settings: Settings,
    spark: SparkSession,
    *,
    may_swap: Callable[[], bool] = lambda: True,
    report: Reporter = warned,
) -> Swapped:
    """Put the former version of a flow back, which goes on from where it stood, with the code of then.

    A table is again what it was; it catches up with the log when the flow runs. A topic keeps the results of
    the newer version; behind them come those of the former one. Interrupted, the next call completes it.
    """
    versions = Versions(pipeline, chosen(pipeline, [flow])[0], settings, spark, report)
    with versions.alone():
        return _Swap(versions).turn_back(may_swap)


class _Swap:
    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._generations = versions.generations

    def swap(self, at_most: int | None, wanted: Compared, may_swap: Callable[[], bool]) -> Swapped:
        known, found = self._generations.read_for("swap"), None
        if not known.swapping:
            self._refuse_unfit(known)
            if not may_swap():
                return self._ended(False, {})
            standing = self._shut_out(known)
            if self._versions.writes_topics:
                self._versions.refuse_additional(standing)
            self._bring_up(known, standing)
            if at_most is not None:
                found = compared(self._versions, known, wanted)
                self._refuse_apart(found)
                if found.differences > at_most:
                    return self._ended(False, standing.position, found)
            known = self._begin(known, known, standing)
        return self._complete(known, found)

    def turn_back(self, may_swap: Callable[[], bool]) -> Swapped:
        known = self._generations.read_for("rollback")
        if not known.swapping:
            self._refuse_no_former(known)
            if not may_swap():
                return self._ended(False, {})
            known = self._begin(known, known.turned_back(), self._shut_out(known))
        return self._complete(known, None)

    def _ended(self, swapped: bool, position: Offsets, found: Difference | None = None) -> Swapped:
        return Swapped(self._versions.flow.name, swapped, position, found)

    def _refuse_unfit(self, known: Generation) -> None:
        versions = self._versions
        number = refuse_no_shadow(versions, known)
        refuse_other_version(versions, known)
        if versions.checkpoint(number).last_committed() is None:
            raise FlowError(
                f"the shadow of {versions.label!r} has not worked on anything yet",
                hint=f"run it: `penstock shadow {versions.command} --once`",
            )
        self._refuse_native()

    def _refuse_native(self) -> None:
        if self._versions.flow.is_native and self._versions.writes_topics:
            raise self._versions.unknown_to_the_offset()

    def _refuse_no_former(self, known: Generation) -> None:
        versions = self._versions
        if known.building is not None:
            raise FlowError(
                f"flow {versions.label!r} has a shadow or a rebuild under way",
                hint=f"give it up first: `penstock shadow {versions.command} --discard`",
            )
        if known.former is None or not known.kept:
            raise FlowError(
                f"no former version of flow {versions.label!r} is kept",
                hint=f"run it in the shadow: `penstock shadow {versions.command}` with the code of then",
            )
        self._refuse_native()
        if versions.writes_topics and versions.checkpoint(known.former).id is None:
            raise FlowError(
                f"the former version of flow {versions.label!r} had not run: it has no state to go on with"
            )

    def _refuse_apart(self, found: Difference) -> None:
        if not found.exact:
            raise FlowError(
                f"flow {self._versions.label!r} and its shadow are {found.apart:,} events apart, and can't "
                "be compared by --at-most",
                hint="the shadow is ahead: let the flow catch up with "
                f"`penstock run {self._versions.pipeline.name} --flow {self._versions.flow.name} --once`",
            )

    def _shut_out(self, known: Generation) -> Standing:
        """Take over the ledger of the version at work, so that it writes nothing more; return its place."""
        versions = self._versions
        entries: tuple[Entry, ...] = ()
        if not versions.target.swap_shuts_out:
            sink = versions.sink(versions.live_job(known.current))
            entries = sink.take_over()
            sink.close()
        if not versions.writes_topics:
            return versions.seen(known.current, known)
        versions.topic_ids(known.current, known)  # its position is one of topics that are still there
        return versions.standing(known.current, entries, known)

    def _bring_up(self, known: Generation, standing: Standing) -> None:
        """Let the shadow work up to where the other one stands, into its own target."""
        job = replace(self._versions.shadow_job(known.building or 0), stops_at=standing.position)
        self._versions.run(job)

    def _begin(self, known: Generation, after: Generation, standing: Standing) -> Generation:
        """Write down that it begins: from here on the flow does not start before it is complete."""
        if not self._versions.writes_topics:
            return self._noted(known, after.cutting({}, 0))
        number = after.building or 0
        self._versions.topic_ids(number, known)
        checkpoint, cut = self._versions.checkpoint(number), self._cut(number, standing)
        self._refuse_far_ahead(checkpoint, cut)
        if self._versions.seen(number, after).position == cut.position:
            refuse_other_watermark(self._versions.live_job(number), cut, checkpoint)
        return self._noted(known, after.cutting(cut.position, cut.watermark))

    def _cut(self, number: int, standing: Standing) -> Cut:
        """Where a topic's results change hands; of a flow that has not run, all is to come."""
        began = self._versions.of_reads(self._versions.checkpoint(number).first_offsets())
        return Cut(standing.position or began, standing.watermark)

    def _refuse_far_ahead(self, checkpoint: Checkpoint, cut: Cut) -> None:
        if checkpoint.last_within(cut.position) < 0 and checkpoint.read("offsets/0") is None:
            raise FlowError(
                f"the shadow of {self._versions.label!r} is too far ahead: none of its checkpoints is as old "
                "as the position of the version at work",
                hint="let that one catch up, then swap",
            )

    def _complete(self, known: Generation, found: Difference | None) -> Swapped:
        self._refuse_moved(known)
        reach("swap.begun", self._versions.label)
        kept = self._put_in_place(known)
        reach("swap.placed", self._versions.label)
        position = self._reached(known)
        self._noted(known, known.swapped(kept=kept))
        self._clean_up(known, position)
        return self._ended(True, position, found)

    def _refuse_moved(self, known: Generation) -> None:
        """Shut out once more, now that the flow does not start: it may have been started before that.

        A table and its checkpoint go together, wherever they stand; of a topic, the cut would be another one.
        """
        versions, cut = self._versions, Cut(known.next_cut, known.next_watermark)
        try:
            standing = self._shut_out(known)
            if versions.writes_topics and self._cut(known.building or 0, standing) != cut:
                raise FlowError(
                    f"flow {versions.label!r} was started again meanwhile, and has gone on",
                    hint=f"stop it, then run the {known.command} again; nothing has changed hands",
                )
        except ConfigurationError:
            if versions.writes_topics:  # of a table nobody knows whether it has changed hands
                self._noted(known, known.given_up())
            raise

    def _put_in_place(self, known: Generation) -> bool:
        versions, number = self._versions, known.building or 0
        self._generations.refuse_overtaken(known)
        if versions.writes_topics:
            self._take_topic_over(known, number)
            return True
        target, other = versions.target, versions.beside(number)
        try:
            if target.keeps_former:
                target.exchange(other, versions.beside(known.current), versions.settings)
            else:
                target.swap(other, versions.settings)
        except TargetError:  # it has changed nothing
            self._noted(known, known.given_up())
            raise
        return target.keeps_former

    def _take_topic_over(self, known: Generation, number: int) -> None:
        """Let a generation's checkpoint and ledger stand at or before the cut, behind which it writes.

        What lies between its last batch and the cut is computed without being written when the flow starts.
        """
        versions, checkpoint = self._versions, self._versions.checkpoint(number)
        sink = self._claimed(known, number)
        pattern = checkpoint.pattern()
        if pattern is not None:
            checkpoint.write(PATTERN, pattern)
        last = checkpoint.last_within(known.next_cut)
        if last >= 0:  # it fails if yet another process has the sink by now
            nothing = versions.spark.createDataFrame([], versions.rows.schema)
            batch = replace(checkpoint.batch(last), topics=versions.topic_ids(number, known))
            sink.write(nothing, batch)
        checkpoint.roll_back(last)
        checkpoint.remove(PASSED)
        reach("swap.rolled-back", versions.label)
        sink.close()

    def _claimed(self, known: Generation, number: int) -> Sink:
        """Become the writer of a generation, whose ledger begins anew.

        Both openings may have waited for the broker while another process completed the swap, and the flow
        went on: its ledger is not forgotten, or else its checkpoint is not rolled back, so that it is refused
        and emits nothing twice.
        """
        sink = self._versions.sink(self._versions.live_job(number))
        sink.open()  # shuts out who has it open, as the shadow
        self._generations.refuse_overtaken(known)
        sink.open(anew=True)
        self._generations.refuse_overtaken(known)
        return sink

    def _reached(self, known: Generation) -> Offsets:
        """Where the one that is in place stands."""
        checkpoint = self._versions.checkpoint(known.building or 0)
        own = self._versions.of_reads(checkpoint.position() or known.built or {})
        return furthest(own, known.next_cut)

    def _clean_up(self, known: Generation, position: Offsets) -> None:
        """Do what the flow does not wait for: what fails is reported, and left behind."""
        versions, group = self._versions, self._generations.of(0).group
        replaced = self._generations.of(known.current)
        for what, act in (
            ("publish its position", lambda: Groups(versions.settings).place(group, position)),
            ("remove what no rollback needs", lambda: self._remove_older(known)),
            ("forget the status of the former version", lambda: forget_status(versions.settings, replaced)),
        ):
            try:
                act()
            except Exception as error:
                text = f"was put in place; can't {what}: {one_line(error)}"
                versions.report(versions.flow.name, Reported.of(text, level="warning"))

    def _remove_older(self, known: Generation) -> None:
        """Remove topics beside the one at work, and what was kept before."""
        versions = self._versions
        if versions.writes_topics:
            versions.beside(known.building or 0).remove(versions.settings)
        if known.former is not None and known.former != known.building:
            if known.kept and not versions.writes_topics:
                versions.beside(known.former).remove(versions.settings)
            versions.forget(known.former)

    def _noted(self, before: Generation, after: Generation) -> Generation:
        if before != after:
            self._generations.write(after, before)
        return after
