"""What Kafka's Java client raised inside of Spark, as an error of ours where trying again is no use."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from penstock.errors import ConfigurationError, SettingsError
from penstock.log.access import denial, refusal
from penstock.process.spark.java import Java
from penstock.settings import Settings, reveal

_DENIED = re.compile(r"\b(Topic|Group|TransactionalId|Cluster)AuthorizationException: ([^\n]*)")
_REFUSED = re.compile(r"\b(?:Sasl|Ssl)AuthenticationException: ([^\n]*)")
_NOT_MADE = re.compile(r"Failed to (?:create new KafkaAdminClient|construct kafka (?:consumer|producer))")
_KINDS = {"TransactionalId": "transactional id"}
# What a broker that goes down, or a name that is not known for a moment, leads to as well.
_PASSING = re.compile(r"terminated the handshake|close_notify|connection reset|bootstrap", re.IGNORECASE)
_DEEPEST = 20


@contextmanager
def java_errors(what: str, settings: Settings) -> Iterator[None]:
    """Raise what Spark's Kafka client says of access or of its settings as an error of ours."""
    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        found = client_error(what, java_text(error), settings)
        if found is None:
            raise
        raise found from error


def client_error(what: str, text: str, settings: Settings) -> ConfigurationError | None:
    """Return the error that a chain of Java exceptions means, if it won't pass by itself."""
    user = settings.kafka.get("sasl.username")
    name = None if user is None else reveal(user)
    if denied := _DENIED.search(text):
        kind = _KINDS.get(denied[1], denied[1].lower())
        return denial(what, kind, denied[2].strip(), name)
    if refused := _REFUSED.search(text):
        return None if _PASSING.search(refused[1]) else refusal(what, refused[1].strip(), name)
    if not _NOT_MADE.search(text) or _PASSING.search(text):
        return None
    return SettingsError(
        f"can't {what}: Spark's Kafka client can't be set up: {text.splitlines()[-1]}",
        hint="what librdkafka takes of [kafka] in penstock.toml, Java does not: see docs/settings.md",
    )


def java_text(error: BaseException | None) -> str:
    """Return what a failure in Java and its causes say, a line for each; Spark shows only the first."""
    raised: Java | None = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    lines: list[str] = []
    try:
        while raised is not None and len(lines) < _DEEPEST:
            lines.append(f"{raised.getClass().getName()}: {raised.getMessage()}")
            raised = raised.getCause()
    except Py4JError:
        pass  # Java is gone: what was heard must do
    return "\n".join(lines)
