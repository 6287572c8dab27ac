"""A directory of schemas in memory, for tests of codecs without a broker."""

from penstock.errors import UnknownSchemaError
from penstock.schemas import NumberedSchema, WrittenSchema


class MemoryDirectory:
    def __init__(self):
        self._known = []

    def id_for(self, subject, kind, text):
        if (subject, kind, text) not in self._known:
            self._known.append((subject, kind, text))
        return self._known.index((subject, kind, text)) + 1

    def numbered(self, subject, kind, text_after):
        ids = [at for at, each in enumerate(self._known, start=1) if each[0] == subject]
        text = text_after([self.written(subject, id) for id in ids])
        return NumberedSchema(self.id_for(subject, kind, text), text)

    def written(self, subject, id):
        if not 0 < id <= len(self._known):
            raise UnknownSchemaError(f"no schema has the id {id}")
        _, kind, text = self._known[id - 1]
        mine = [each for each in self._known if each[0] == subject]
        return WrittenSchema(kind, text, mine.index(self._known[id - 1]) + 1)


class Outage(MemoryDirectory):
    """A directory of schemas that can't be reached while `error` is set."""

    error = None

    def written(self, subject, id):
        if self.error is not None:
            raise self.error
        return super().written(subject, id)
