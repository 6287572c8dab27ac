"""Security settings reach every client, and a secret appears in no output."""

import io
import logging
import os
import subprocess
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from penstock.errors import PenstockError
from penstock.events import Event
from penstock.log import Broker, Consumer, ExactlyOnce, Groups, Producer, Topic, apply, redrive
from penstock.settings import Settings

CANARY = "canary-51c0ffee"


@dataclass(frozen=True)
class Note(Event):
    at: datetime


topic = Topic("security.notes", Note)


@pytest.fixture
def guarded(settings):
    """Settings that ask for SASL of a broker that has none: every client must try it, and fail."""
    return Settings(
        kafka={
            **settings.kafka,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": "penstock",
            "sasl.password": CANARY,
            "socket.timeout.ms": "3000",
            "message.timeout.ms": "2000",
        }
    )


def send(settings):
    with Producer(settings) as producer:
        producer.send_bytes(topic.name, b"k", topic.codec().encode(Note(datetime(2026, 1, 1, tzinfo=UTC))))


@pytest.mark.parametrize(
    "use",
    [
        lambda settings: Broker(settings).topics(),
        send,
        lambda settings: next(Consumer(topic, settings).records(idle="1 second")),
        lambda settings: ExactlyOnce(topic, settings, group="security"),
        lambda settings: Groups(settings).all(),
        lambda settings: redrive(topic.name, settings),
    ],
    ids=["broker", "producer", "consumer", "exactly-once", "groups", "replay"],
)
def test_each_client_uses_the_security_settings_and_hides_the_secret(
    settings, guarded, use, monkeypatch, caplog
):
    monkeypatch.setattr("penstock.log.client.TIMEOUT", 3.0)
    for module in ("broker", "consumer", "groups"):
        monkeypatch.setattr(f"penstock.log.{module}.TIMEOUT", 3.0)
    apply([topic], Broker(settings))
    output = io.StringIO()
    with caplog.at_level(logging.DEBUG), redirect_stdout(output), redirect_stderr(output):
        with pytest.raises(PenstockError) as caught:
            use(guarded)
        output.write("".join(traceback.format_exception(caught.value)))
        output.write(repr(caught.value.__dict__))
    assert CANARY not in output.getvalue() + caplog.text
    assert use is send or "can't" in str(caught.value)


def test_the_command_line_hides_the_secret(tmp_path, settings):
    environ = {
        "PENSTOCK_KAFKA_BOOTSTRAP_SERVERS": "127.0.0.1:1",
        "PENSTOCK_KAFKA_SASL_PASSWORD": CANARY,
        "PENSTOCK_KAFKA_SASL_MECHANISM": "NO-SUCH-THING",
        "PENSTOCK_KAFKA_SECURITY_PROTOCOL": "SASL_PLAINTEXT",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", "from penstock.cli.main import run; run()", "topics", "list"]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 78
    assert "NO-SUCH-THING" in done.stderr
    assert CANARY not in done.stdout + done.stderr
