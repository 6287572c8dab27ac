"""Access: a broker that does not let a client in, or not do what it wants. Trying again is no use."""

import re

from confluent_kafka import KafkaError

from penstock.errors import AuthenticationError, AuthorizationError, ConfigurationError

_DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional id",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
}
_REFUSED = (
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
)
# The client has the same codes for a connection that was merely cut while both sides got to know each other.
_CUT = re.compile(r"transport failure|disconnected|timed out|connection (reset|closed)", re.IGNORECASE)
_CERTIFICATE = re.compile("certificate", re.IGNORECASE)
_WHERE = "docs/settings.md lists what each client needs"


def is_refused(error: KafkaError) -> bool:
    """Say whether the broker does not know the user, or one side does not trust the other's certificate."""
    said = error.str()
    if error.code() == KafkaError._TRANSPORT:
        return _CERTIFICATE.search(said) is not None
    return error.code() in _REFUSED and not _CUT.search(said)


def is_denied(error: KafkaError) -> bool:
    """Say whether the user is known, but lacks a permission."""
    return error.code() in _DENIED


def access_error(what: str, error: KafkaError, user: str | None) -> ConfigurationError | None:
    """Return what to raise for a refusal or a denial; None for any other error."""
    if is_denied(error):
        return denial(what, _DENIED[error.code()], error.str(), user)
    if is_refused(error):
        return refusal(what, error.str(), user)
    return None


def denial(what: str, kind: str, said: str, user: str | None) -> AuthorizationError:
    """Return the error for a permission that is missing on a kind of thing, such as a topic."""
    principal = f"User:{user}" if user else "the client's principal"
    hint = f"grant it to {principal}, with kafka-acls or the like; {_WHERE}"
    if kind == "topic":
        hint += "; a topic that it may not describe looks as if it were missing"
    if kind == "cluster":
        hint += "; a producer needs WRITE on a topic"
    return AuthorizationError(
        f"can't {what}: {principal} lacks a permission on the {kind}: {said}", hint=hint
    )


def refusal(what: str, said: str, user: str | None) -> AuthenticationError:
    """Return the error for a client that is not let in, or that does not trust the broker."""
    if _CERTIFICATE.search(said) or "SSL" in said.replace("sasl_ssl", "").replace("SASL_SSL", ""):
        hint = (
            "check ssl.ca.location, that the broker's certificate names the host in bootstrap.servers, and "
            "ssl.certificate.location and ssl.key.location if the broker asks for them"
        )
        return AuthenticationError(f"can't {what}: no connection is trusted: {said}", hint=hint)
    who = f"user {user!r}" if user else "the client"
    hint = "check sasl.username, sasl.password and sasl.mechanism"
    return AuthenticationError(f"can't {what}: the broker does not let {who} in: {said}", hint=hint)
