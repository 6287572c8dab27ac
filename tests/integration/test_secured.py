"""Every client through a broker that knows its users: turned away, or let in and going on from there."""

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

import psutil
import pytest
from tests.integration.acl_table import permissions
from tests.integration.guarded import (
    booked,
    echoed,
    echoing,
    guarded,
    history,
    payments,
    recalled,
    some_payments,
)
from tests.integration.secured import STORE_PASSWORD, secured_broker

from penstock.errors import AuthenticationError, AuthorizationError, DeliveryError, PenstockError
from penstock.events import Event
from penstock.log import Broker, Consumer, ExactlyOnce, Groups, Producer, Queue, Topic, apply, redrive
from penstock.log.topic import DEAD_LETTERS
from penstock.ops.collecting import look
from penstock.pipeline import Runner, verify
from penstock.pipeline.ticks import Ticks
from penstock.registry import Registry
from penstock.schemas.compatibility import SchemaKind
from penstock.settings import Settings

CANARY = "canary-51c0ffee"
PASSWORD = f"{CANARY} \"q\" \\b\\ 'a' ; = , # ${{x}} ü"


@dataclass(frozen=True)
class Note(Event):
    text: str
    at: datetime


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    with secured_broker(tmp_path_factory.mktemp("secured")) as found:
        yield found


@pytest.fixture
def user(broker, tmp_path):
    """A function that lets a new user in and returns their settings."""

    def added(name, *grants):
        broker.add_user(name, PASSWORD)
        broker.grant(name, *grants)
        return broker.settings(name, PASSWORD, tmp_path)

    return added


@dataclass(frozen=True)
class Case:
    """A topic with two notes and something that can't be read, and the settings of who works on it."""

    name: str
    settings: Settings
    admin: Settings

    @property
    def topic(self):
        return Topic(self.name, Note, key="text", partitions=1)

    @property
    def result(self):
        return Topic(f"{self.name}.result", Note, key="text", partitions=1)

    @property
    def group(self):
        return f"{self.name}.group"

    def prepare(self):
        broker, dead = Broker(self.admin), self.name + DEAD_LETTERS
        apply([self.topic, self.result], broker)
        broker.ensure(dead, 1, {})
        encode = self.topic.codec().encode
        with Producer(self.admin) as producer:
            for value in (encode(a_note("one")), b"?", encode(a_note("three"))):
                producer.send_bytes(self.name, b"k", value)
            producer.send_bytes(dead, b"k", b"?", [("penstock.dead.topic", self.name.encode())])
        Groups(self.admin).place(f"{self.group}.lag", {self.name: {0: 1}})


def a_note(text):
    return Note(text, datetime(2026, 1, 1, tzinfo=UTC))


def texts(consumer):
    return [record.event.text for record in consumer.records(idle="1 second")]


def produce(case):
    with Producer(case.settings) as producer:
        producer.send(case.result, a_note("sent"))
    with Consumer(case.result, case.admin) as consumer:
        return texts(consumer)


def consume(case):
    with Consumer(case.topic, case.settings, group=case.group) as consumer:
        return texts(consumer)


def transact(case):
    with ExactlyOnce(case.topic, case.settings, group=case.group, member="m") as work:
        for transaction in work.transactions(idle="1 second"):
            for record in transaction:
                transaction.send(case.result, record.event)
    with Consumer(case.result, case.admin) as consumer:
        return texts(consumer)


def take(case):
    found = []
    with Queue(case.topic, case.settings, group=case.group) as queue:
        for lease in queue.take(idle="1 second"):
            found.append(lease.event.text)
            lease.acknowledge()
    return found


def register(case):
    with Registry(case.settings) as registry:
        registry.id_for(case.name, SchemaKind.AVRO, '"string"')
        return registry.subjects().count(case.name)


def lag(case):
    return [each.events for each in Groups(case.settings).lag(f"{case.group}.lag")]


def redriven(case):
    return redrive(case.name, case.settings).sent


CLIENTS = {
    "Producer": (produce, ["sent"]),
    "Consumer": (consume, ["one", "three"]),
    "ExactlyOnce": (transact, ["one", "three"]),
    "Queue": (take, ["one", "three"]),
    "Registry": (register, 1),
    "Groups.lag": (lag, [2]),
    "redrive": (redriven, 1),
}


def refused(use, case):
    """Return what a client raised, within a time in which somebody waits for an answer."""
    began = time.monotonic()
    with pytest.raises(PenstockError) as caught:
        use(case)
    assert time.monotonic() - began < 12
    assert CANARY not in f"{caught.value} {caught.value.__dict__}"
    return caught.value


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"sasl_password": "nonsense"}, "check sasl.username, sasl.password and sasl.mechanism"),
        ({"bootstrap_servers": "localhost:{port}"}, "certificate names the host in bootstrap.servers"),
    ],
    ids=["password", "host name"],
)
def test_who_is_not_let_in_is_reported_why_and_does_not_wait(broker, user, wrong, says):
    user("stranger")
    changed = {name: value.format(port=broker.port) for name, value in wrong.items()}
    case = Case("strange", broker.settings("stranger", PASSWORD, broker.folder, **changed), broker.open)
    uses = [use for use, _ in CLIENTS.values()]
    with ThreadPoolExecutor(len(uses)) as pool:
        errors = list(pool.map(lambda use: refused(use, case), uses))
    assert [type(error) for error in errors] == [DeliveryError] + 6 * [AuthenticationError]
    for error in errors:
        assert says in str(error)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_needs_the_permissions_that_are_listed_and_goes_on_with_them(broker, user, client):
    use, expected = CLIENTS[client]
    Broker(broker.open).ensure("_penstock_schemas", 1, {"cleanup.policy": "compact"})

    def without(number):
        name = f"{use.__name__}-{number}"
        group = f"{name}.group.lag" if use is lag else f"{name}.group"
        listed = permissions(client, topic=name, result=f"{name}.result", group=group)
        if use is produce:
            listed = permissions(client, topic=f"{name}.result")
        if number >= len(listed):
            return
        missing = listed.pop(number)
        case = Case(name, user(name, *listed), broker.open)
        case.prepare()
        if (client, missing[0]) != ("Groups.lag", "topic"):  # what may not be seen is not seen to lag
            error = refused(use, case)
            assert type(error) is (DeliveryError if use is produce else AuthorizationError), error
            assert f"User:{name}" in str(error)
        broker.grant(name, missing)
        assert use(case) == expected

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(without, range(5)))


@pytest.fixture(scope="module")
def paid(broker):
    """How many payments the administrator has put into the topic that the pipelines read."""
    admin, count = broker.open, 40
    apply([payments, booked, echoed, history], Broker(admin))
    Broker(admin).ensure(payments.name + DEAD_LETTERS, 1, {})
    with Registry(admin) as registry, Producer(admin, schemas=registry) as producer:
        producer.send_all(payments, some_payments(count))
        producer.send_bytes(payments.name, b"card-0", b"malformed")
    return list(range(count))


def found(topic, admin):
    with Consumer(topic, admin) as consumer:
        return sorted(record.event.cents for record in consumer.records(idle="1 second"))


def run(pipeline, settings, spark, until=None):
    with Runner(pipeline, settings, once=until is None, spark=spark) as runner:
        deadline = time.monotonic() + 60
        while not runner.wait(0.2) and not (until is not None and until()):
            assert time.monotonic() < deadline


def listed(pipeline, result):
    """What a pipeline may do, and what it may see of the topics even if it may do nothing with them."""
    grants = permissions("pipeline", pipeline=pipeline.name, topic=payments.name, result=result.name)
    seen = [("topic", topic.name, "describe describe_configs") for topic in (payments, result)]
    return grants, [*permissions("Registry"), *seen]


@pytest.mark.long
def test_a_pipeline_needs_the_permissions_that_are_listed_and_loses_nothing_without(
    broker, user, spark, paid, tmp_path, caplog, capfd
):
    grants, others = listed(guarded, booked)
    withheld = {
        "transactional id": ("transactional id", "penstock.guarded.*", "write"),
        payments.name: ("topic", payments.name, "read describe_configs"),
        booked.name: ("topic", booked.name, "write describe_configs"),
    }
    settings = user("clerk", *others, *(set(grants) - set(withheld.values())))
    for says, grant in withheld.items():
        assert grant in grants
        with pytest.raises(AuthorizationError, match=f"User:clerk.*{says}|{says}.*User:clerk"):
            run(guarded, settings, spark)
        broker.grant("clerk", grant)
    run(guarded, settings, spark)
    assert found(booked, broker.open) == paid
    broker.grant("clerk", *permissions("verify", topic=payments.name, result=booked.name))
    assert all(verification.ok for verification in verify(guarded, settings, spark))
    assert Broker(broker.open).committed_end(payments.name + DEAD_LETTERS)[0] > 0
    assert Groups(settings).lag("penstock.guarded.book")
    assert_hidden(tmp_path, caplog.text + "".join(capfd.readouterr()))


@pytest.mark.long
def test_real_time_and_replay_need_the_permissions_that_are_listed(broker, user, spark, paid):
    (grants, others), admin = listed(echoing, echoed), broker.open
    write = ("topic", echoed.name, "write describe_configs")
    settings = user("echo", *others, *(set(grants) - {write}), *listed(recalled, history)[0])
    with pytest.raises(AuthorizationError, match=f"User:echo.*{echoed.name}"):
        run(echoing, settings, spark, until=lambda: False)
    broker.grant("echo", write)
    run(echoing, settings, spark, until=lambda: len(found(echoed, admin)) >= len(paid))
    assert found(echoed, admin) == paid
    run(recalled, settings, spark)
    assert found(history, admin) == paid


def test_a_clock_needs_the_permissions_that_are_listed(broker, user):
    rows = permissions("pipeline", pipeline="timed", topic="timed.in", result="timed.out")
    (topic,) = (grant for grant in rows if "clock" in grant[1])
    settings = user("clock")
    ticks = Ticks(settings, "_penstock_clock.timed.hourly")
    tick = {"generation": "first", "time": 1, "clock": False, "position": {}, "kept": {}}
    with pytest.raises(AuthorizationError, match="User:clock"):
        ticks.prepare()
    broker.grant("clock", (*topic[:2], "create describe"))
    ticks.prepare()
    with pytest.raises(AuthorizationError, match=r"write to '_penstock_clock.*User:clock"):
        ticks.write(tick)
    broker.grant("clock", topic)
    ticks = Ticks(settings, ticks.topic)  # as in the next run
    assert ticks.write(tick)
    assert ticks.last("first") == tick


def assert_hidden(folder, output):
    """No secret is in a log, in a file that was written, or on a command line."""
    running = [
        each for each in psutil.Process().children(recursive=True) if each.status() != psutil.STATUS_ZOMBIE
    ]
    commands = [" ".join(each.cmdline()) for each in running]
    files = [file.read_bytes() for file in folder.rglob("*") if file.is_file()]
    assert files
    assert len(commands) > 1
    for secret in (CANARY, STORE_PASSWORD):
        assert secret not in output
        assert not [command for command in commands if secret in command]
        assert not [content for content in files if secret.encode() in content]


def test_status_needs_what_is_listed_and_says_what_it_may_not_see(broker, user):
    case = Case("watched", broker.open, broker.open)
    case.prepare()
    listed = permissions("penstock status", topic="watched", group="watched.group.lag")
    commits = next(each for each in listed if each[1] == "__consumer_offsets")
    mine = user("watcher", *(each for each in listed if each is not commits))
    system = look(mine)
    (group,) = [each for each in system.groups if each.group.startswith("watched.group")]
    assert (group.events, group.judgement) == (2, "unknown")
    assert any("history of commits" in each and "User:watcher" in each for each in system.unanswered)
    broker.grant("watcher", commits)
    system = look(mine)
    (group,) = [each for each in system.groups if each.group.startswith("watched.group")]
    assert (group.events, group.judgement, system.unanswered) == (2, "ok", ())
