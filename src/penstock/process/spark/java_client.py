"""What Kafka's Java client, which Spark uses, is given of the settings that librdkafka takes."""

import base64
from collections.abc import Mapping
from pathlib import Path

from penstock.errors import SettingsError
from penstock.settings import Settings

# What both clients know by the same name and in the same sense. The rest is librdkafka's own, or is decided
# by Spark, such as group.id and auto.offset.reset, and is left out.
_SHARED = frozenset(
    {
        "bootstrap.servers",
        "client.id",
        "client.rack",
        "client.dns.lookup",
        "security.protocol",
        "sasl.mechanism",
        "sasl.kerberos.service.name",
        "ssl.endpoint.identification.algorithm",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "metadata.max.age.ms",
        "reconnect.backoff.ms",
        "reconnect.backoff.max.ms",
        "retry.backoff.ms",
        "retry.backoff.max.ms",
        "connections.max.idle.ms",
        "socket.connection.setup.timeout.ms",
        "fetch.min.bytes",
        "fetch.max.bytes",
        "fetch.max.wait.ms",
        "max.partition.fetch.bytes",
        "acks",
        "enable.idempotence",
        "linger.ms",
        "batch.size",
        "compression.type",
    }
)
_RENAMED = {
    "metadata.broker.list": "bootstrap.servers",
    "sasl.mechanisms": "sasl.mechanism",
    "fetch.wait.max.ms": "fetch.max.wait.ms",
    "fetch.message.max.bytes": "max.partition.fetch.bytes",
    "compression.codec": "compression.type",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
}
_PBES2 = bytes.fromhex("06092a864886f70d01050d")  # its object identifier, as it stands in an encrypted key
_LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def java_settings(settings: Settings) -> dict[str, str]:
    """Return the settings of every Kafka client as the Java client takes them, secrets in the clear.

    >>> java_settings(Settings(kafka={"bootstrap.servers": "broker:9092", "socket.timeout.ms": "3000"}))
    {'bootstrap.servers': 'broker:9092'}
    """
    given = settings.client()
    renamed = {_RENAMED.get(name, name): value for name, value in given.items()}
    shared = {name: _value(name, value) for name, value in renamed.items() if name in _SHARED}
    return shared | _login(renamed) | _truststore(given) | _keystore(given)


def _value(name: str, value: str) -> str:
    if name == "security.protocol":
        return value.upper()
    if name == "ssl.endpoint.identification.algorithm":
        return "" if value == "none" else value
    return value


def _login(given: Mapping[str, str]) -> dict[str, str]:
    if not given.get("security.protocol", "").upper().startswith("SASL"):
        return {}
    mechanism = given.get("sasl.mechanism", "GSSAPI")
    module = _LOGIN_MODULES.get(mechanism)
    if module is None:
        raise SettingsError(
            f"sasl.mechanism is {mechanism}, which can't be set up for Spark",
            hint=f"use one of {', '.join(_LOGIN_MODULES)}",
        )
    name, password = (_quoted(given.get(f"sasl.{each}", "")) for each in ("username", "password"))
    return {"sasl.jaas.config": f"{module} required username={name} password={password};"}


def _quoted(text: str) -> str:
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    return '"' + "".join(escapes.get(letter, letter) for letter in text) + '"'


def _truststore(given: Mapping[str, str]) -> dict[str, str]:
    if "ssl.ca.pem" in given:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": given["ssl.ca.pem"]}
    if "ssl.ca.location" in given:
        if Path(given["ssl.ca.location"]).is_dir():
            raise SettingsError(
                f"ssl.ca.location is the folder {given['ssl.ca.location']}, of which Java can't read",
                hint="name a file that holds the certificates",
            )
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": given["ssl.ca.location"]}
    return {}


def _keystore(given: Mapping[str, str]) -> dict[str, str]:
    """The Java client takes a certificate and its key as texts, or both in one file."""
    if "ssl.keystore.location" in given:
        return {"ssl.keystore.type": "PKCS12"} | _key_password(given)
    certificate, key = (_pem(given, f"ssl.{each}") for each in ("certificate", "key"))
    if certificate is None or key is None:
        return {}
    if "PRIVATE KEY" in key and "BEGIN PRIVATE KEY" not in key and "BEGIN ENCRYPTED" not in key:
        raise SettingsError(
            "ssl.key.location holds a key in a form that Java does not read",
            hint="convert it: openssl pkcs8 -topk8 -in client.key -out client.pk8",
        )
    is_encrypted = "BEGIN ENCRYPTED" in key
    if is_encrypted and _PBES2 in _der(key):
        raise SettingsError(
            "ssl.key.location holds a key whose encryption (PBES2) Java does not read",
            hint="put it into a store, named by ssl.keystore.location and ssl.keystore.password: "
            "openssl pkcs12 -export -inkey client.key -in client.pem -out client.p12",
        )
    made = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": certificate,
        "ssl.keystore.key": key,
    }
    # Java would try to decrypt a key that is in the clear.
    return made | (_key_password(given) if is_encrypted else {})


def _key_password(given: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if name == "ssl.key.password"}


def _der(pem: str) -> bytes:
    """The bytes of the last block of a PEM text."""
    body = "".join(line for line in pem.rpartition("BEGIN")[2].splitlines()[1:] if "-----" not in line)
    try:
        return base64.b64decode(body)
    except ValueError:
        return b""  # Java says what is wrong with it


def _pem(given: Mapping[str, str], name: str) -> str | None:
    if f"{name}.pem" in given:
        return given[f"{name}.pem"]
    if f"{name}.location" not in given:
        return None
    try:
        return Path(given[f"{name}.location"]).read_text()
    except OSError as error:
        raise SettingsError(f"{name}.location can't be read: {error}") from error
