"""The console over 200 topics: how soon each page is there, and what 50 open browsers cost its server."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psutil
from playwright.sync_api import Browser, Page, sync_playwright
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from bench.cpu import cpu_seconds
from penstock.local import running
from penstock.log import Broker, Groups, Producer
from penstock.log.topic import DEAD_LETTERS
from penstock.pipeline.flow_status import FlowStatus, LatencyHistogram, Sample
from penstock.pipeline.latency import BOUNDS
from penstock.settings import Settings

TOPICS, PARTITIONS, GROUPS, FLOWS = 200, 3, 40, 24
BROWSERS, PAGES, RATE, SECONDS = 50, 3, 2_000, 60
_CHROMIUM = os.environ.get("BENCH_CHROMIUM", "/usr/bin/chromium")
_FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking")
_PATIENCE = 60_000
SHOWN = {
    "": "document.querySelectorAll('.map .box').length > 40",
    "topics": f"document.querySelectorAll('tbody tr').length >= {TOPICS}",
    "topics/load.t000": "document.querySelectorAll('.event').length > 0 && "
    f"document.querySelectorAll('[aria-label=Partitions] tbody tr').length === {PARTITIONS}",
    "groups": f"document.querySelectorAll('tbody tr').length >= {GROUPS}",
    "groups/load-g00": f"document.querySelectorAll('tbody tr').length >= {PARTITIONS}",
    "pipelines": f"document.querySelectorAll('tbody tr').length >= {FLOWS}",
    "pipelines/load0.flow0": "document.querySelectorAll('[aria-label^=Phases] tbody tr').length > 1",
    "schemas": "document.querySelector('main .empty strong, main tbody tr')",
    "captures": "document.querySelectorAll('main .empty').length >= 3",
    "views": "document.querySelector('main .empty strong')",
    "commands": "document.querySelector('main .empty strong')",
    "doctor": "document.querySelector('main .finding, main .empty')",
    "audit": "document.querySelector('main .empty strong, main tbody tr')",
}


def main() -> None:
    with running(services=("kafka",)) as settings, console(settings) as at:
        fill(settings)
        print(f"{TOPICS} topics of {PARTITIONS} partitions, {GROUPS} groups, {FLOWS} flows\n")
        with chromium() as browser:
            print("| page | there after | again |\n|---|---:|---:|")
            for path, first, again in page_times(browser, at.address):
                print(f"| {path or 'overview'} | {first:,.0f} ms | {again:,.0f} ms |", flush=True)
            found = watched(browser, at, settings)
        print(
            f"\n| browsers | events/s | cores | memory | snapshots/s to each | bytes of one |\n"
            f"|---:|---:|---:|---:|---:|---:|\n| {BROWSERS} | {found.rate:,.0f} | {found.cores:.2f} | "
            f"{found.megabytes:,.0f} MB | {found.pushes:.2f} | {found.size:,} |"
        )


@dataclass(frozen=True)
class Served:
    """A console by its address and its process."""

    address: str
    pid: int


@contextmanager
def console(settings: Settings, *words: str) -> Iterator[Served]:
    """`penstock console`, a process of its own."""
    command = [sys.executable, "-m", "penstock.cli", "console", "--port", "0", *words]
    environment = {**os.environ, **settings.environment(), "COLUMNS": "200"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        yield Served(first.split()[2].rstrip(";,"), process.pid)
    finally:
        process.terminate()
        process.wait(30)


def fill(settings: Settings) -> None:
    """Make topics with some events, groups that have read a part, and flows that were heard of."""
    broker = Broker(settings)
    names = [topic_name(number) for number in range(TOPICS)]
    for name in names:
        broker.ensure(name, PARTITIONS, {})
    for name in names[:4]:
        broker.ensure(name + DEAD_LETTERS, 1, {})
    with Producer(settings) as producer:
        for number, name in enumerate(names):
            for event in range(20):
                producer.send_bytes(name, f"k{event % 7}".encode(), _event(number, event))
        producer.flush()
        for flow in flows():
            broker.ensure(flow.identity.statuses, 1, {"cleanup.policy": "compact"})
            producer.send_bytes(flow.identity.statuses, flow.identity.sink.encode(), flow.to_json())
    groups = Groups(settings)
    for number in range(GROUPS):
        groups.place(f"load-g{number:02}", {names[number]: dict.fromkeys(range(PARTITIONS), 3)})


def topic_name(number: int) -> str:
    return f"load.t{number:03}"


def flows() -> list[FlowStatus]:
    """Flows from one topic to the next, in pipelines of six."""
    now = time.time()
    counts = tuple(min(1000, 300 * n) for n in range(len(BOUNDS)))
    samples = tuple(Sample(now - 600 + 10 * n, n, 900, 0.7, 12, now - 30) for n in range(60))
    return [
        FlowStatus(
            f"load{number // 6}.flow{number % 6}",
            "running",
            now + 3600,
            now - 600,
            "elsewhere/17",
            reads=(topic_name(number),),
            writes=(topic_name(number + 1),),
            target=f"topic {topic_name(number + 1)}",
            rows=54_000,
            batches=60,
            latency=LatencyHistogram(counts, 1000, 120.0),
            phases={"addBatch": 0.5, "triggerExecution": 0.7, "walCommit": 0.1},
            samples=samples,
        )
        for number in range(FLOWS)
    ]


def _event(topic: int, number: int) -> bytes:
    return json.dumps({"id": f"{topic}-{number}", "customer": f"c{number % 7}", "amount": number}).encode()


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as made:
        browser = made.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def page_times(
    browser: Browser, address: str, paths: Iterable[str] = tuple(SHOWN)
) -> Iterator[tuple[str, float, float]]:
    """Yield each page, the ms until it was there in a new tab, and when it was gone to from another."""
    for path in paths:
        shown = SHOWN[path]
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(f"{address}/#/{path}")
        first = _shown_after(tab, shown, "0")
        tab.evaluate("location.hash = '#/audit?'" if path != "audit" else "location.hash = '#/views'")
        tab.wait_for_timeout(300)
        tab.evaluate(f"window.began = performance.now(); location.hash = '#/{path}'")
        tab.wait_for_timeout(1)
        again = _shown_after(tab, shown, "window.began")
        tab.close()
        yield path, first, again


def _shown_after(tab: Page, shown: str, began: str) -> float:
    """The ms by the page's own clock; the page is there when it can be drawn."""
    handle = tab.wait_for_function(f"() => ({shown}) ? performance.now() - {began} : 0", timeout=_PATIENCE)
    return float(handle.json_value())


@dataclass
class Found:
    """What browsers cost: cores and megabytes of the server, and what each of them got."""

    cores: float = 0.0
    megabytes: float = 0.0
    rate: float = 0.0
    pushes: float = 0.0
    size: int = 0


@dataclass
class _Clients:
    """Browsers that only take snapshots in, each a connection of its own."""

    address: str
    stopping: threading.Event = field(default_factory=threading.Event)
    got: dict[int, int] = field(default_factory=dict)
    size: int = 0

    def watch(self, number: int) -> None:
        url = f"{self.address.replace('http', 'ws')}/api/live"
        with connect(url, origin=self.address, max_size=None) as socket:  # type: ignore[arg-type]
            while not self.stopping.is_set():
                try:
                    text = socket.recv(timeout=30)
                except ConnectionClosed:  # the server was ended first
                    return
                self.size = max(self.size, len(text) if "snapshot" in str(text[:20]) else 0)
                self.got[number] = self.got.get(number, 0) + 1


def watched(
    browser: Browser, at: Served, settings: Settings, seconds: float = SECONDS, browsers: int = BROWSERS
) -> Found:
    """Measure the server while browsers are open and events come in."""
    clients, found = _Clients(at.address), Found()
    others = browsers - PAGES
    threads = [threading.Thread(target=clients.watch, args=(n,), daemon=True) for n in range(others)]
    with ExitStack() as opened:
        sender = opened.enter_context(_sending(settings))
        opened.callback(clients.stopping.set)
        for path in list(SHOWN)[:PAGES]:
            tab = browser.new_page()
            opened.callback(tab.close)
            tab.goto(f"{at.address}/#/{path}")
        for each in threads:
            each.start()
        _until(lambda: len(clients.got) == others, "all browsers are served")
        before = sum(clients.got.values()), sender.sent, cpu_seconds(at.pid), time.monotonic()
        while time.monotonic() < before[3] + seconds:
            found.megabytes = max(found.megabytes, psutil.Process(at.pid).memory_info().rss / 1e6)
            browser.contexts[0].pages[0].wait_for_timeout(500)
        took = time.monotonic() - before[3]
        found.cores = (cpu_seconds(at.pid) - before[2]) / took
        found.pushes = (sum(clients.got.values()) - before[0]) / took / others
        found.rate, found.size = (sender.sent - before[1]) / took, clients.size
    return found


@dataclass
class _Sender:
    sent: int = 0


@contextmanager
def _sending(settings: Settings, rate: int = RATE) -> Iterator[_Sender]:
    """Send so many events a second to twenty topics."""
    sender, stopping = _Sender(), threading.Event()

    def send() -> None:
        began = time.monotonic()
        with Producer(settings) as producer:
            while not stopping.wait(0.02):
                due = int((time.monotonic() - began) * rate)
                for number in range(sender.sent, due):
                    producer.send_bytes(topic_name(number % 20), b"k", _event(number % 20, number))
                sender.sent = due

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield sender
    finally:
        stopping.set()
        thread.join()


def _until(reached: Callable[[], Any], what: str, patience: float = 60.0) -> None:
    deadline = time.monotonic() + patience
    while not reached():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.1)
