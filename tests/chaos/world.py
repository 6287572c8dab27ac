"""The world that faults happen in: a platform, a proxy before each of its services, a driver and a feeder."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from urllib.parse import urlsplit

from penstock.errors import PenstockError
from penstock.local import Platform, ports
from penstock.log import Broker, Groups, Producer, apply
from penstock.settings import Settings, reveal
from penstock.testing import Driver, Proxy
from tests import quick
from tests.chaos.shop import CODE, sales, shop
from tests.integration.shop import make_sales

MODULE = str(Path(__file__).with_name("shop.py"))
NAMES = list(shop.flows)


@dataclass
class World:
    """Everything that can be hurt; `direct` settings lead past the proxies, for those who only watch."""

    platform: Platform
    direct: Settings
    kafka: Proxy
    postgres: Proxy
    driver: Driver
    random: Random
    stopped: threading.Event = field(default_factory=threading.Event)
    feeding: threading.Event = field(default_factory=threading.Event)
    sending: threading.Lock = field(default_factory=threading.Lock)
    sent: int = 0
    code: str = "1"

    def pause(self) -> None:
        """Send nothing for a while."""
        self.feeding.clear()
        with self.sending:
            pass

    def resume(self) -> None:
        self.feeding.set()

    @property
    def checkpoints(self) -> Path:
        return Path(self.direct.flows) / shop.name

    def positions(self) -> dict[str, int]:
        """How many events each flow has read, by its published position."""
        groups = Groups(self.direct)
        found = {}
        for name in NAMES:
            offsets = groups.positions(f"penstock.{shop.name}.{name}")
            found[name] = sum(sum(each.values()) for each in offsets.values())
        return found

    def second_driver(self) -> Driver:
        """Another driver of the same pipeline, as after a split: same checkpoints, same sinks."""
        behind = _behind(self.direct, self.kafka, self.postgres)
        other = replace(behind, data=self.direct.data / "second", checkpoints=self.direct.flows)
        return Driver(shop.name, MODULE, other, name="second", environment={CODE: self.code})

    def restart(self, *options: str, points: Mapping[str, str] | None = None) -> None:
        """Kill the driver and start it with options; `restart()` alone leaves them out again."""
        self.driver.kill()
        behind = _behind(self.direct, self.kafka, self.postgres)
        environment = {CODE: self.code, **(points or {})}
        self.driver = Driver(shop.name, MODULE, behind, options=options, environment=environment)
        self.driver.start()

    def send(self, count: int) -> None:
        """Send sales at once, as a backlog."""
        with self.sending, Producer(self.direct) as producer:
            producer.send_all(sales, make_sales(count, self.random.randrange(10**9), self.sent))
            self.sent += count

    def await_progress(self, timeout: float = 120) -> bool:
        """Wait until every flow has taken in something new; False if one of them does not."""
        deadline = time.monotonic() + timeout
        before: dict[str, int] = {}
        while time.monotonic() < deadline:
            try:
                now = self.positions()
                before = before or now
                if all(now[name] > before[name] for name in NAMES):
                    return True
            except PenstockError:
                pass  # the broker is about to come back
            if not self.driver.alive:
                return False
            time.sleep(0.3)
        return False


@contextmanager
def world(folder: Path, seed: int) -> Iterator[World]:
    """Start it all, feed it while it is looked at, and end it."""
    inner = ports.any_free()
    kafka = Proxy(inner)
    platform = Platform(folder / "data", kafka_proxy=(kafka.port, inner))
    direct = platform.up()
    postgres = Proxy(urlsplit(reveal(direct.postgres or "")).port or 0)
    apply([sales], Broker(direct))
    driver = Driver(shop.name, MODULE, _behind(direct, kafka, postgres))
    made = World(platform, direct, kafka, postgres, driver, Random(seed))
    feeder = threading.Thread(target=_feed, args=(made,), daemon=True)
    made.resume()
    feeder.start()
    try:
        yield made
    finally:
        made.stopped.set()
        feeder.join(30)
        made.driver.kill()
        kafka.close()
        postgres.close()
        platform.down()


def _behind(direct: Settings, kafka: Proxy, postgres: Proxy) -> Settings:
    address = urlsplit(reveal(direct.postgres or ""))
    netloc = f"{address.username}:{address.password}@127.0.0.1:{postgres.port}"
    return replace(
        direct,
        kafka={"bootstrap.servers": f"127.0.0.1:{kafka.port}"},
        postgres=address._replace(netloc=netloc).geturl(),
        spark=quick.SPARK,
    )


def _feed(made: World) -> None:
    """Send sales, and now and then something that is none, until asked to stop."""
    random = Random(made.random.random())
    while not made.stopped.wait(0.4):
        if not made.feeding.is_set():
            continue
        try:
            with made.sending, Producer(made.direct) as producer:
                producer.send_all(sales, make_sales(40, random.randrange(10**9), made.sent))
                if random.random() < 0.1:
                    producer.send_bytes(sales.name, b"c1", b"\x00not a sale")
            made.sent += 40
        except PenstockError:
            pass  # the broker is down: the verification counts what is in the log, not what was sent
