"""Registers a schema under a subject, after it was compared with those before it."""

from dataclasses import dataclass

from penstock.control.action import Outcome
from penstock.log import Broker
from penstock.registry import Registry
from penstock.registry.judge import LocalJudge, Source
from penstock.registry.topic import NAME
from penstock.schemas import SchemaKind
from penstock.settings import Settings


@dataclass(frozen=True)
class SchemaRegistration:
    """A schema that is to be the next version of a subject."""

    subject: str
    kind: SchemaKind
    text: str

    name = "schema.register"

    def preview(self, settings: Settings) -> Outcome:
        """Return the problems with the versions before it, if there are any."""
        if not Broker(settings).exists(NAME):  # a registry that is opened makes its topic
            LocalJudge().canonical(Source(self.kind, self.text))
            return Outcome(f"compatible: the first version of {self.subject}, and the first schema of all")
        with Registry(settings) as registry:
            problems = registry.check(self.subject, self.kind, self.text)
            mode = registry.mode(self.subject).value
        rows = tuple({"field": each.path, "rule": each.rule, "what": each.message} for each in problems)
        verdict = f"{len(rows)} problems: it is not compatible" if rows else "compatible"
        return Outcome(f"{verdict} ({mode})", rows)

    def act(self, settings: Settings) -> Outcome:
        with Registry(settings) as registry:
            record = registry.register(self.subject, self.kind, self.text)
        return Outcome(f"{self.subject} version {record.version}, id {record.id}")
