"""A broker that lets in known users only: SASL_SSL with SCRAM and client certificates, and ACLs."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from penstock.local import ports, service
from penstock.local.kafka import Kafka
from penstock.settings import Settings

STORE_PASSWORD = "store-5ec2e7"
Grant = tuple[str, str, str]  # "topic", "shop.*", "read write": a star at the end stands for a prefix
_KINDS = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,
}


@dataclass(frozen=True)
class SecuredBroker:
    """A running broker; `open` leads its administrator to the listener that asks nobody who they are."""

    folder: Path
    port: int
    admin: AdminClient
    open: Settings

    def add_user(self, name: str, password: str) -> None:
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(name, info, password.encode())
        self.admin.alter_user_scram_credentials([change])[name].result(15)
        self._await(lambda who: self.admin.describe_user_scram_credentials([who])[who].result(15), name)

    def settings(self, name: str, password: str, data: Path, **kafka: str) -> Settings:
        """Settings with which a user comes in; dots are written as underscores."""
        changed = {key.replace("_", "."): value for key, value in kafka.items()}
        return Settings(
            kafka={
                "bootstrap.servers": f"{ports.LOOPBACK}:{self.port}",
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": name,
                "sasl.password": password,
                "ssl.ca.location": str(self.folder / "ca.pem"),
                "ssl.keystore.location": str(self.folder / "client.p12"),
                "ssl.keystore.password": STORE_PASSWORD,
            }
            | changed,
            data=data,
        )

    def grant(self, user: str, *grants: Grant) -> None:
        for binding in _bindings(user, grants):
            self.admin.create_acls([binding])[binding].result(15)
            self._await(lambda wanted: self.admin.describe_acls(wanted).result(15), _filter(binding))

    @staticmethod
    def _await(known: Callable[[Any], object], what: object) -> None:
        """The controller has taken an order; the broker hears of it a moment later."""
        deadline = time.monotonic() + 15
        while True:
            with suppress(KafkaException):
                if known(what):
                    return
            assert time.monotonic() < deadline
            time.sleep(0.02)


@contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    _write_certificates(folder)
    port = ports.any_free()
    kafka = Kafka(folder / "broker", ports.any_free(), secured=(port, _broker_settings(folder)))
    try:
        open_port = service.start(kafka, lambda _: None)
        found = dict(kafka.endpoint(open_port))
        yield SecuredBroker(folder, port, AdminClient({**found, "log_level": 0}), Settings(kafka=found))
    finally:
        service.stop(kafka, lambda _: None)


def _broker_settings(folder: Path) -> dict[str, str]:
    listener = {
        "scram-sha-512.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(folder / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "ca.pem"),
    }
    return {f"listener.name.secured.{name}": value for name, value in listener.items()} | {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": "User:ANONYMOUS",
    }


def _bindings(user: str, grants: tuple[Grant, ...]) -> list[AclBinding]:
    return [
        AclBinding(
            _KINDS[kind],
            name.removesuffix("*"),
            ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            AclOperation[operation.upper()],
            AclPermissionType.ALLOW,
        )
        for kind, name, operations in grants
        for operation in operations.split()
    ]


def _filter(binding: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        binding.restype, binding.name, binding.resource_pattern_type, binding.principal, binding.host,
        binding.operation, binding.permission_type,
    )  # fmt: skip


def _write_certificates(folder: Path) -> None:
    authority = ec.generate_private_key(ec.SECP256R1())
    (folder / "ca.pem").write_bytes(_pem(_certificate("authority", authority, authority)))
    broker, client = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    (folder / "broker.pem").write_bytes(_key(broker) + _pem(_certificate("broker", broker, authority)))
    store = pkcs12.serialize_key_and_certificates(
        b"client", client, _certificate("client", client, authority), None,
        serialization.BestAvailableEncryption(STORE_PASSWORD.encode()),
    )  # fmt: skip
    (folder / "client.p12").write_bytes(store)


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named("authority"))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=key is issuer, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address(ports.LOOPBACK))]), False)
        .sign(issuer, hashes.SHA256())
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
