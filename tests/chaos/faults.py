"""The faults: each does its harm, undoes it where it must be undone, and says whether it landed."""

import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from penstock.errors import EngineError
from penstock.log import Broker
from penstock.testing.listener import PointListener
from tests.chaos import scenarios
from tests.chaos.shop import sales, shop
from tests.chaos.world import NAMES, World

ENDED, MOST_PARTITIONS = EngineError.exit_code, 8
PAST_THE_TRANSACTION = 13.0  # seconds; the shop's transactions are given up after 10


@dataclass(frozen=True)
class Landed:
    """What really happened."""

    kind: str
    detail: str
    loud: str = ""  # what the pipeline refused with, where refusing is the right answer


Fault = Callable[[World], Landed | None]


def kill_driver(world: World) -> Landed | None:
    if not world.driver.alive:
        return None
    world.driver.kill()
    world.driver.start()
    return Landed("driver killed", "kill -9 of driver, JVM and workers")


def pause_driver(world: World) -> Landed | None:
    if not world.driver.alive:
        return None
    world.driver.pause(PAST_THE_TRANSACTION)
    return Landed(
        "driver paused", f"SIGSTOP for {PAST_THE_TRANSACTION:.0f} s, past the transaction's time-out"
    )


def kill_broker(world: World) -> Landed | None:
    return _kill(world, "kafka", "broker killed")


def kill_database(world: World) -> Landed | None:
    return _kill(world, "postgres", "database killed")


def pause_broker(world: World) -> Landed | None:
    return _pause(world, "kafka", "broker paused")


def pause_database(world: World) -> Landed | None:
    return _pause(world, "postgres", "database paused")


def cut_kafka(world: World) -> Landed | None:
    count = world.kafka.cut()
    return Landed("connections cut", f"{count} to Kafka") if count else None


def cut_postgres(world: World) -> Landed | None:
    count = _patiently(world.postgres.cut)
    return Landed("connections cut", f"{count} to PostgreSQL") if count else None


def delay_kafka(world: World) -> Landed | None:
    return _delay(world, "kafka")


def delay_postgres(world: World) -> Landed | None:
    return _delay(world, "postgres")


def drop_kafka_reply(world: World) -> Landed | None:
    return _drop(world, "kafka")


def drop_postgres_reply(world: World) -> Landed | None:
    return _drop(world, "postgres")


def two_drivers(world: World) -> Landed | None:
    """A second driver takes over; the first has to give way, and whoever is left is replaced by a new one."""
    if not world.driver.alive:
        return None
    other = world.second_driver()
    other.start()
    try:
        _patiently(lambda: not world.driver.alive or not other.alive, 60)
        gave_way = "first" if not world.driver.alive else "second" if not other.alive else "neither"
    finally:
        other.kill()
    world.driver.kill()
    world.driver.start()
    return Landed("two drivers", f"{gave_way} gave way within 60 s")


def fill_disk(world: World) -> Landed | None:
    """The disk of the checkpoints is full for some seconds, if it is one of its own."""
    disk = Path(world.direct.flows)
    if not os.path.ismount(disk):
        return None
    block = disk / "filled"
    with block.open("wb") as file:
        try:
            while True:
                file.write(b"\0" * 65536)
                file.flush()
        except OSError:
            pass
    time.sleep(4)
    block.unlink()
    return Landed("disk full", "no space for checkpoints for 4 s")


def damage_checkpoint(world: World) -> Landed | None:
    """The newest file of a flow's log of offsets or commits is cut short or gone after a crash."""
    flow, kind = world.random.choice(NAMES), world.random.choice(("offsets", "commits"))
    folder = world.checkpoints / flow / "checkpoint" / kind
    world.driver.kill()
    files = sorted(
        (each for each in folder.glob("*") if each.name.isdigit()), key=lambda each: int(each.name)
    )
    if not files:
        world.driver.start()
        return None
    return _damage(world, flow, files[-1])


def kill_java(world: World) -> Landed | None:
    """Spark's Java process alone dies: the run ends with a code of its own, and a supervisor starts it."""
    if not world.driver.alive or world.driver.pid is None:
        return None
    java = [each for each in psutil.Process(world.driver.pid).children() if "java" in each.name()]
    if not java:
        return None
    java[0].kill()
    code = world.driver.wait(120)
    world.driver.start()
    return Landed("java killed", "kill -9 of the JVM alone", f"exit code {code}") if code == ENDED else None


def add_partitions(world: World) -> Landed | None:
    """The topic that is read gets one more partition while it is."""
    broker = Broker(world.direct)
    count = broker.topic(sales.name).partitions
    if count >= MOST_PARTITIONS:
        return None
    broker.grow(sales.name, count + 1)
    return Landed("partition added", f"{sales.name} has {count + 1}")


def lose_checkpoint(world: World) -> Landed | None:
    """A flow's checkpoint is gone after a crash; going on from the ledger is itself killed on the way."""
    flow = world.random.choice(NAMES)
    world.driver.kill()
    shutil.rmtree(world.checkpoints / flow)
    world.restart("--from-ledger")
    time.sleep(world.random.uniform(5, 20))
    world.restart("--from-ledger")
    if not world.await_progress(120):
        return Landed("checkpoint lost", flow, world.driver.last_words())
    world.restart()
    return Landed("checkpoint lost", f"{flow}: gone on from the ledger, killed on the way")


def change_code(world: World) -> Landed | None:
    """Killed, and started with code that decodes by another class."""
    world.code = "2" if world.code == "1" else "1"
    world.restart()
    return Landed("code changed", f"killed, then started with version {world.code}")


def kill_between_lanes(world: World) -> Landed | None:
    """A lane of a large batch is committed, the others are not."""
    world.driver.kill()
    world.send(4_000)
    committed = ("sink.kafka.committed", f"{shop.name}.bill")
    with PointListener(lambda *passed: passed == committed) as points:
        world.restart(points=points.environment)
        landed = _patiently(lambda: points.passed[committed], 120)
        world.restart()
    return Landed("killed between lanes", "4,000 events waited") if landed else None


def make_topic_again(world: World) -> Landed | None:
    return Landed("topic made again", scenarios.topic_made_again(world.direct))


def grow_in_real_time(world: World) -> Landed | None:
    return Landed("partitions added in real time", scenarios.partitions_added_in_real_time(world.direct))


def storm(world: World) -> Landed | None:
    return Landed("rebalance storm", scenarios.rebalance_storm(world.direct, world.direct.data / "storms"))


KINDS: dict[str, tuple[int, Fault]] = {  # with how often each comes, relative to the others
    "kill_driver": (4, kill_driver),
    "pause_driver": (1, pause_driver),
    "kill_broker": (3, kill_broker),
    "kill_database": (4, kill_database),
    "pause_broker": (2, pause_broker),
    "pause_database": (2, pause_database),
    "cut_kafka": (16, cut_kafka),
    "cut_postgres": (16, cut_postgres),
    "delay_kafka": (8, delay_kafka),
    "delay_postgres": (8, delay_postgres),
    "drop_kafka_reply": (18, drop_kafka_reply),
    "drop_postgres_reply": (18, drop_postgres_reply),
    "two_drivers": (1, two_drivers),
    "fill_disk": (2, fill_disk),
    "damage_checkpoint": (2, damage_checkpoint),
    "kill_java": (2, kill_java),
    "add_partitions": (1, add_partitions),
    "lose_checkpoint": (2, lose_checkpoint),
    "change_code": (2, change_code),
    "kill_between_lanes": (2, kill_between_lanes),
    "make_topic_again": (1, make_topic_again),
    "grow_in_real_time": (1, grow_in_real_time),
    "storm": (1, storm),
}


def _damage(world: World, flow: str, file: Path) -> Landed:
    """Damage a file; if the flow refuses to go on, say so and bring the file back, as it asks for."""
    copy = world.direct.data / "before-the-damage"
    shutil.copy(file, copy)
    how = world.random.choice(("deleted", "truncated"))
    checksum = file.with_name(f".{file.name}.crc")
    checksum.unlink(missing_ok=True)
    if how == "deleted":
        file.unlink()
    else:
        os.truncate(file, world.random.randrange(max(1, file.stat().st_size // 2)))
    mark = world.driver.log.stat().st_size
    world.driver.start()
    refused = "" if world.await_progress(40) else _complaint(world, flow, mark)
    if refused:
        world.driver.kill()
        shutil.copy(copy, file)
        world.driver.start()
    return Landed("checkpoint damaged", f"{flow}: {file.parent.name}/{file.name} {how}", refused)


def _complaint(world: World, flow: str, mark: int) -> str:
    with world.driver.log.open("rb") as log:
        log.seek(mark)
        said = [line for line in log.read().decode(errors="replace").splitlines() if "batch" not in line[:40]]
    return next(
        (line for line in said if flow in line or "error" in line), said[-1] if said else "nothing said"
    )


def _kill(world: World, service: str, kind: str) -> Landed | None:
    process = _service(world, service)
    if process is None:
        return None
    process.kill()
    process.wait(10)
    world.platform.up()
    return Landed(kind, "kill -9, started again")


def _pause(world: World, service: str, kind: str) -> Landed | None:
    process = _service(world, service)
    if process is None:
        return None
    seconds = world.random.choice((2.0, 5.0, PAST_THE_TRANSACTION))
    family = [process, *process.children(recursive=True)]
    for each in family:
        _signal(each, signal.SIGSTOP)
    time.sleep(seconds)
    for each in family:
        _signal(each, signal.SIGCONT)
    return Landed(kind, f"SIGSTOP for {seconds:.0f} s")


def _delay(world: World, name: str) -> Landed | None:
    proxy = getattr(world, name)
    before = proxy.landed["delayed"]
    proxy.delay(world.random.choice((0.05, 0.3)))
    time.sleep(1.5)
    proxy.delay(0)
    passed = proxy.landed["delayed"] - before
    return Landed("network delayed", f"{passed} packets of {name}") if passed else None


def _drop(world: World, name: str) -> Landed | None:
    proxy = getattr(world, name)
    before = proxy.landed["reply dropped"]
    proxy.drop_replies_to_commits(1)
    landed = _patiently(lambda: proxy.landed["reply dropped"] > before)
    proxy.drop_replies_to_commits(0)
    return Landed("reply to a commit dropped", name) if landed else None


def _service(world: World, name: str) -> psutil.Process | None:
    state = next(each for each in world.platform.status() if each.name == name)
    return psutil.Process(state.pid) if state.pid else None


def _signal(process: psutil.Process, number: int) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _patiently(ask: Callable[[], object], timeout: float = 20) -> object:
    deadline = time.monotonic() + timeout
    while not (answer := ask()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return answer
