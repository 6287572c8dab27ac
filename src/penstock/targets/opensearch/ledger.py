"""The ledger beside an index: a document for each lane of a sink, which only its last holder can replace."""

from dataclasses import dataclass

import msgspec

from penstock.documents import JsonObject
from penstock.errors import FencedError, SinkError
from penstock.events import new_id
from penstock.log.ledger import Entry
from penstock.targets.opensearch.client import Client, path_of, refused
from penstock.targets.opensearch.indices import Generation

_CONFLICT, _NOT_FOUND = 409, 404
_TRIES = 20  # of others who open the same lane at the same moment


class Note(msgspec.Struct, frozen=True):
    """What stands in a lane's document: the entry, how many rows the lane has written, and who holds it."""

    entry: str = Entry().to_json().decode()
    rows: int = 0
    holder: str = ""


@dataclass(frozen=True)
class Held:
    """A note, and where it stands in the history of its document."""

    note: Note
    place: tuple[int, int] | None = None


class LaneLedger:
    """The document of one lane."""

    def __init__(self, client: Client, generation: Generation, sink: str, number: int) -> None:
        self._client, self._generation = client, generation
        self._id, self.sink, self._lane = f"{sink} {number}", sink, number
        self.held = Held(Note())

    def take(self) -> None:
        """Become the holder: whoever was before can't replace the note any more."""
        for _ in range(_TRIES):
            found = self.read()
            if self._put(found, msgspec.structs.replace(found.note, holder=new_id())):
                return
        raise SinkError(f"lane {self._lane} of {self.sink!r} is opened by many at once", hint="try again")

    def write(self, note: Note) -> None:
        """Replace the note; refuse if somebody else is the holder by now."""
        if not self._put(self.held, note):
            raise self._fenced()

    def check(self) -> None:
        """Refuse if somebody else is the holder by now."""
        if self.read().note.holder != self.held.note.holder:
            raise self._fenced()

    def read(self) -> Held:
        answer = self._client.ask("GET", path_of(self._generation.ledger, "_doc", self._id))
        if answer.status == _NOT_FOUND:
            return Held(Note())
        if not answer.ok:
            raise refused("GET", self._generation.ledger, answer)
        return held(answer.json())

    def _put(self, before: Held, note: Note) -> bool:
        """Replace what was read before; say whether it was still there."""
        path = path_of(self._generation.writing_ledger, "_doc", self._id) + "?require_alias=true"
        path += (
            "&op_type=create"
            if before.place is None
            else "&if_seq_no={}&if_primary_term={}".format(*before.place)
        )
        answer = self._client.ask("PUT", path, msgspec.to_builtins(note))
        if answer.status == _NOT_FOUND:
            raise self._fenced()
        if answer.status == _CONFLICT:
            now = self.read()  # the answer to an earlier try may have been lost
            self.held = now if now.note == note else self.held
            return now.note == note
        if not answer.ok:
            raise refused("PUT", self._generation.writing_ledger, answer)
        made = answer.json()
        self.held = Held(note, (made["_seq_no"], made["_primary_term"]))
        return True

    def _fenced(self) -> FencedError:
        return FencedError(
            f"lane {self._lane} of sink {self.sink!r} has another writer, or its index was swapped",
            hint="the flow runs in another process, or was rebuilt: stop one of the two",
        )


def held(document: JsonObject) -> Held:
    """Return what a document of the ledger holds."""
    note = msgspec.convert(document["_source"], Note)
    return Held(note, (document["_seq_no"], document["_primary_term"]))


def lane_count(client: Client, generation: Generation, sink: str, wanted: int | None) -> int:
    """Return how many lanes a sink has, 0 before it has any; the first wish decides."""
    if wanted is not None:
        path = path_of(generation.writing_ledger, "_create", sink) + "?require_alias=true"
        answer = client.ask("PUT", path, {"lanes": wanted})
        if not answer.ok and answer.status != _CONFLICT:
            raise refused("PUT", generation.ledger, answer)
    answer = client.ask("GET", path_of(generation.ledger, "_doc", sink))
    if not answer.ok and answer.status != _NOT_FOUND:
        raise refused("GET", generation.ledger, answer)
    return int(answer.json()["_source"]["lanes"]) if answer.ok else 0


def notes(client: Client, generation: Generation) -> dict[str, Held]:
    """Return the notes of all lanes of all sinks that write an index, by their documents' names."""
    client.need("POST", path_of(generation.ledger, "_refresh"))
    asked: JsonObject = {"size": 10_000, "seq_no_primary_term": True}
    found = client.need("POST", path_of(generation.ledger, "_search"), asked)["hits"]["hits"]
    return {each["_id"]: held(each) for each in found if "entry" in each["_source"]}
