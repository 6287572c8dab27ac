"""The topics that a flow's positions are of: one that was made again has the same name, and other events."""

import json
from collections.abc import Mapping

from penstock.errors import FlowError, TopicError
from penstock.log import Broker, Table
from penstock.log.archive.tiers import Tiers
from penstock.pipeline.checkpoint import Checkpoint
from penstock.pipeline.job import Job
from penstock.settings import Settings

_WRITTEN = "topics.json"  # beside the checkpoint


class ReadTopics:
    """Knows the ids of the topics that a flow reads, and the partitions of its tables."""

    def __init__(self, job: Job, settings: Settings, checkpoint: Checkpoint) -> None:
        self._job, self._checkpoint = job, checkpoint
        self._broker, self._tiers = Broker(settings), Tiers(settings)
        self._names = sorted({topic.name for topic in (*job.topics, *job.flow.looks_up.values())})
        self._tables = sorted(
            {table.name for table in (*job.topics, *job.flow.looks_up.values()) if isinstance(table, Table)}
        )
        self.ids: Mapping[str, str] = {}
        self._partitions: Mapping[str, int] = {}

    def open(self) -> None:
        """Refuse topics that are not those of the checkpoint; write down what they are."""
        written = json.loads(self._checkpoint.read(_WRITTEN) or "{}")
        self.ids, self._partitions = written.get("ids", {}), written.get("partitions", {})
        self.refuse_made_again()
        self.ids = {**self.ids, **self._broker.topic_ids(self._names)}
        self._partitions = self._counted()
        now = {"ids": self.ids, "partitions": self._partitions}
        if now != written:
            self._checkpoint.write(_WRITTEN, json.dumps(now))

    def refuse_made_again(self, ids: Mapping[str, str] | None = None) -> None:
        """Refuse a topic that was deleted and made again, and a table whose keys have moved."""
        known = self.ids if ids is None else ids
        found = self._broker.topic_ids([name for name in self._names if name in known])
        for name, id in found.items():
            if id != known[name]:
                raise TopicError(
                    f"topic {name!r} was deleted and made again since flow {self._job.label!r} read it: its "
                    f"id was {known[name]}, and is {id}; the flow's position is one of the old topic",
                    hint=_anew(self._job),
                )
        self._refuse_moved_keys()

    def refuse_archived_beginning(self) -> None:
        """Refuse to begin as a stream where Kafka's log begins, if the topic's own beginning is archived."""
        begun = self._checkpoint.last_planned() is not None
        if begun or any(name.startswith("starting") for name in self._job.flow.options):
            return
        archived = next((each.name for each in self._job.topics if self._tiers.history(each.name)), None)
        if archived is not None:
            raise FlowError(
                f"flow {self._job.label!r} would begin in the midst of {archived!r}: what came before is in "
                "the topic's archive, and a stream reads Kafka only",
                hint="of a flow without state, `penstock rebuild` makes a table of the archive, and it goes "
                "on behind that; a flow that is a View begins with what the archive comes to; any other one "
                'with state can only be run in mode="replay", which reads all of the archive, too; to leave '
                'out what is archived, write options={"startingOffsets": "earliest"}',
            )

    def count_partitions(self) -> int:
        """How many partitions there are to be read."""
        return sum(state.partitions for state in self._broker.topics(self._names).values())

    def _refuse_moved_keys(self) -> None:
        if not self._partitions:
            return
        for name, count in self._counted().items():
            before = self._partitions.get(name, count)
            if count != before:
                raise TopicError(
                    f"table {name!r} had {before} partitions when flow {self._job.label!r} read it, and has "
                    f"{count}: its keys have moved, and which row of a key is the newest is not known",
                    hint="copy the table to a new topic with that many partitions, and read that one",
                )

    def _counted(self) -> dict[str, int]:
        states = self._broker.topics(self._tables) if self._tables else {}
        return {name: state.partitions for name, state in states.items()}


def _anew(job: Job) -> str:
    identity = job.identity
    if job.rebuilds:
        discard = f"penstock shadow {identity.pipeline} {identity.flow} --discard"
        return f"give what was made of the old topic up with `{discard}`, and begin again"
    run = f"penstock run {identity.pipeline} --flow {identity.flow} --begin-anew"
    return (
        f"let it begin anew with `{run}`, which forgets its checkpoint, its state and its ledger; "
        "results that were written stay"
    )
