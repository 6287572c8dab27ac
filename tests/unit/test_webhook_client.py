"""The client of a webhook against a real server on loopback that misbehaves."""

import json
import ssl
import time
import traceback
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.receiver import Receiver

from penstock.errors import DataError, FlowError, PenstockError, SettingsError, TargetError
from penstock.events import Event as Declared
from penstock.log import Topic
from penstock.pipeline import Pipeline
from penstock.settings import Secret, Settings
from penstock.targets import Webhook
from penstock.targets.webhook import verify_signature
from penstock.targets.webhook.client import Client
from penstock.targets.webhook.endpoint import Endpoint
from penstock.targets.webhook.event import Event, Request

HIDDEN = "hunter2-hunter2"


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.stop()


def request(id="e1", **more):
    return Request((Event(id, "k", json.dumps({"id": id}), **more),))


def client(receiver, timeout="500 ms", **more):
    return Client(Endpoint("here", Secret(receiver.url), **more), "shop.partner", timeout, "1 second")


def test_a_request_has_its_headers_and_keeps_its_connection(receiver):
    posting = client(receiver)
    for attempt in (1, 2):
        done = posting.post(request(topic="orders", partition=3, offset=17), attempt)
        assert (done.status, done.text, done.is_success) == (200, "ok", True)
    first, second = receiver.taken
    assert first.connection == second.connection
    wanted = {
        "idempotency-key": "e1",
        "content-type": "application/json",
        "penstock-flow": "shop.partner",
        "penstock-topic": "orders",
        "penstock-partition": "3",
        "penstock-offset": "17",
        "penstock-attempt": "1",
    }
    assert wanted.items() <= first.headers.items()
    assert second.headers["penstock-attempt"] == "2"
    assert first.events == [{"id": "e1"}]


@pytest.mark.parametrize("action", ["hang", "drip", "continue"])
def test_an_answer_that_does_not_end_is_broken_off_in_time(receiver, action):
    receiver.decide = lambda _: action
    began = time.monotonic()
    done = client(receiver).post(request(), 1)
    assert time.monotonic() - began < 2
    assert (done.status, done.said, done.left) == (None, "did not answer in 0.5 s", True)


@pytest.mark.parametrize(
    ("action", "said"), [("drop", "broke off"), ("reset", "broke off"), ("part", "broke")]
)
def test_a_connection_that_breaks_is_no_answer(receiver, action, said):
    receiver.decide = lambda _: action
    done = client(receiver).post(request(), 1)
    assert done.status is None
    assert said in done.said
    assert len(receiver.all) == 1


def test_a_huge_header_is_refused(receiver):
    receiver.decide = lambda _: "huge"
    assert "longer than 262,144 bytes" in client(receiver).post(request(), 1).said


def test_of_an_endless_body_only_the_beginning_is_read(receiver):
    receiver.decide = lambda _: "endless"
    done = client(receiver).post(request(), 1)
    assert done.status == 500
    assert done.text == "x" * 2000


def test_a_kept_connection_that_was_closed_costs_no_attempt(receiver):
    receiver.decide = lambda _: "close"
    posting = client(receiver)
    for _ in range(3):
        assert posting.post(request(), 1).is_success
        time.sleep(0.05)
    assert receiver.connections == 3
    assert len(receiver.all) == 3


def test_nobody_listens(receiver):
    receiver.stop()
    done = client(receiver).post(request(), 1)
    assert (done.status, done.left) == (None, False)
    assert done.said == "can't be reached: Connection refused"


def test_a_redirect_is_not_followed(receiver):
    receiver.decide = lambda _: (302, {"Location": receiver.url})
    assert client(receiver).post(request(), 1).status == 302
    assert len(receiver.all) == 1


def test_what_lets_one_in_is_cut_out_of_what_the_endpoint_echoes(receiver):
    receiver.decide = lambda seen: (400, {}, f"bad header {seen.headers['authorization']}")
    done = client(receiver, headers={"Authorization": Secret(f"Bearer {HIDDEN}")}).post(request(), 1)
    assert receiver.all[0].headers["authorization"] == f"Bearer {HIDDEN}"
    assert done.text == "bad header ***"


@pytest.mark.parametrize("secret", [HIDDEN, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"])
def test_a_signature_is_verified_by_the_receiver(receiver, secret):
    assert client(receiver, secret=Secret(secret)).post(request(), 1).is_success
    (seen,) = receiver.taken
    now = time.time()
    assert verify_signature(Secret(secret), seen.headers, seen.body, now=now) == "e1"
    wrong = [
        (Secret("other"), seen.headers, seen.body, now),
        (Secret(secret), seen.headers, seen.body + b" ", now),
        (Secret(secret), seen.headers | {"webhook-id": "e2"}, seen.body, now),
        (Secret(secret), seen.headers, seen.body, now + 400),
        (Secret(secret), {}, seen.body, now),
    ]
    for *given, moment in wrong:
        with pytest.raises(DataError):
            verify_signature(*given, now=moment)


def test_a_certificate_that_is_not_trusted_is_refused(receiver, tmp_path):
    certificate, key = made_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    receiver.server.socket = context.wrap_socket(receiver.server.socket, server_side=True)
    address = Endpoint("here", Secret(receiver.url.replace("http:", "https:")))
    done = Client(address, "f", "1 second", "1 second").post(request(), 1)
    assert "CERTIFICATE_VERIFY_FAILED" in done.said
    assert not done.left
    trusted = replace(address, ca=str(certificate))
    assert Client(trusted, "f", "1 second", "1 second").post(request(), 1).is_success


def made_certificate(folder):
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "receiver")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(address, critical=False).sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = serialization.Encoding.PEM
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(private)
    return folder / "cert.pem", folder / "key.pem"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/x",
        "file:///etc/passwd",
        "https://",
        f"https://user:{HIDDEN}@host/",
        f"https://host/{HIDDEN}#part",
        f"https://host/{HIDDEN} x",
        "https://host:99999/",
        "http://[broken/",
        f"https://host/{HIDDEN}\r\nX: 1",
        "https://hôte/",
    ],
)
def test_an_address_that_may_not_be_is_refused_and_not_shown(url):
    with pytest.raises(TargetError) as caught:
        Webhook(url=url)
    assert HIDDEN not in "".join(traceback.format_exception(caught.value))


def test_what_is_declared_is_checked():
    for wrong, said in (
        ({}, "neither a connection nor a url"),
        ({"url": "https://h", "batch": 0}, "batch is 0"),
        ({"url": "https://h", "format": "xml"}, "format is 'xml'"),
        ({"url": "https://h", "headers": {"Idempotency-Key": "1"}}, "header 'Idempotency-Key'"),
        ({"url": "https://h", "headers": {"X": "a\r\nb"}}, "its value of 'X'"),
        ({"url": "https://h", "timeout": "soon"}, "not a duration"),
    ):
        with pytest.raises(PenstockError, match=said):
            Webhook(**wrong)


def connected(**partner):
    return Settings(kafka={"bootstrap.servers": "nowhere:1"}, connections={"partner": partner})


def test_a_connection_gives_address_and_secrets():
    settings = connected(
        url=f"https://host/{HIDDEN}", token=HIDDEN, secret=HIDDEN, **{"header.X-Api-Key": HIDDEN}
    )
    found = Webhook(connection="partner", headers={"X-Team": "shop"}).endpoint(settings)
    assert found.headers["Authorization"].value == f"Bearer {HIDDEN}"
    assert found.headers["X-Api-Key"].value == HIDDEN
    assert found.headers["X-Team"].value == "shop"
    assert found.path == f"/{HIDDEN}"
    assert HIDDEN not in repr(found)
    for partner, target, said in (
        ({}, Webhook(connection="partner"), "has no url"),
        ({"url": "https://h"}, Webhook(connection="partner", url="https://h"), "so has the webhook"),
        ({"url": "https://h", "tokens": "x"}, Webhook(connection="partner"), "setting 'tokens'"),
    ):
        with pytest.raises(SettingsError, match=said):
            target.endpoint(connected(**partner))


@dataclass(frozen=True)
class Order(Declared):
    at: datetime


orders = Topic("webhook.orders", Order, partitions=1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"guarantee": "exactly-once"}, "can't be exactly-once in stream mode: an HTTP endpoint keeps no"),
        ({"mode": "replay"}, "can't write a Webhook in replay mode: a replay would send every event"),
        ({"mode": "realtime"}, "can't write a Webhook in realtime mode: a request that waits"),
    ],
)
def test_what_a_webhook_can_not_guarantee_is_refused_when_the_flow_is_described(options, said):
    def partner(orders):
        return orders

    pipeline, hook = Pipeline("webhooks"), Webhook(url="https://h")
    with pytest.raises(FlowError, match=said):
        pipeline.flow(reads={"orders": orders}, writes=hook, **options)(partner)
    pipeline.flow(reads={"orders": orders}, writes=hook)(partner)
    assert pipeline.flows["partner"].effective_guarantee == "at-least-once"
