"""Pipelines started, shadowed, compared, swapped and rolled back from the console."""

import json
import os
import subprocess
import sys
import textwrap
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from axe_playwright_python.sync_playwright import Axe
from tests.browser import chromium
from tests.console import csrf, served

from penstock.cli.modules import loaded_modules
from penstock.console.server import Watched
from penstock.control.command import Command
from penstock.control.command_folder import CommandFolder
from penstock.control.commands import Commands
from penstock.control.declared_pipeline import DeclaredPipelines
from penstock.control.run_registry import RunRegistry
from penstock.gateway import Declared
from penstock.log import Broker, Consumer, Producer
from penstock.ops.collecting import collecting, look
from penstock.ops.doctor.probes import Probes
from penstock.pipeline.flow_status import FlowStatus, flow_statuses

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
PATIENCE = 15_000  # milliseconds
SPARK = 600.0  # seconds that a command with a Spark of its own may take on a busy machine
ORDERS = """
    from dataclasses import dataclass
    from datetime import UTC, datetime

    from penstock.events import Event
    from penstock.log import Topic
    from penstock.pipeline import Pipeline


    @dataclass(frozen=True)
    class Order(Event):
        id: int
        customer: str
        price: float
        at: datetime


    @dataclass(frozen=True)
    class Alert(Event):
        id: str
        order: int
        price: float
        at: datetime


    ORDERS = Topic("{mark}.orders", Order, key="customer", partitions=2)
    ALERTS = Topic("{mark}.alerts", Alert, partitions=2)
"""
SHOP = """
    from orders{mark} import ALERTS, ORDERS
    from penstock.pipeline import Pipeline
    from pyspark.sql import functions as F

    shop = Pipeline("shop{mark}")


    @shop.flow(reads={{"orders": ORDERS}}, writes=ALERTS, version="{version}")
    def large(orders):
        found = orders.where("price > {limit}")
        return found.select(F.col("id").alias("order"), "price", "at", "_source")
"""


@dataclass
class Shop:
    """A console in a folder with a pipeline in two versions, and a module that can't be imported."""

    name: str
    address: str
    web: httpx.Client
    settings: object
    folder: Path

    @property
    def old(self):
        return f"shop{self.name}.py"

    @property
    def new(self):
        return f"shop{self.name}_2.py"

    @property
    def pipeline(self):
        return f"shop{self.name}"

    def ask(self, action, *, dry_run, **values):
        asked = {"action": action, "dry_run": dry_run, **values}
        return self.web.post("/api/actions", json=asked)

    def begin(self, action, **values):
        """Check an action, carry it out, and return its command's id."""
        shown = self.ask(action, dry_run=True, **values)
        assert shown.status_code == 200, shown.text
        done = self.ask(action, dry_run=False, seen=shown.json()["seen"], **values)
        assert done.status_code == 200, done.text
        return done.json()["command"]

    def ended(self, id, within=SPARK):
        deadline = time.monotonic() + within
        while True:
            found = self.web.get("/api/command", params={"name": id}).json()
            if found["state"] != "running":
                return found
            assert time.monotonic() < deadline, found
            time.sleep(0.2)

    def of_flow(self, module):
        return {"pipeline": self.pipeline, "flow": "large", "module": module}


@pytest.fixture(scope="module")
def shop(settings, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shop")
    mark = folder.name[-6:].replace("-", "").lower() + "x"
    limits = {f"shop{mark}.py": ("1", 90), f"shop{mark}_2.py": ("2", 80)}
    (folder / f"orders{mark}.py").write_text(textwrap.dedent(ORDERS).format(mark=mark))
    for name, (version, limit) in limits.items():
        text = textwrap.dedent(SHOP).format(mark=mark, version=version, limit=limit)
        (folder / name).write_text(text)
    (folder / "penstock.toml").write_text(
        '[spark]\n"spark.driver.extraJavaOptions" = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"\n'
        '"spark.sql.shuffle.partitions" = "2"\n'
    )
    own = replace(settings, data=folder / "data")
    with ExitStack() as opened:
        patched = opened.enter_context(pytest.MonkeyPatch.context())
        patched.chdir(folder)
        modules = loaded_modules(tuple(limits))
        orders = modules[0].ORDERS
        Broker(own).ensure(orders.name, 2, {})
        with Producer(own) as producer:
            made = modules[0].ORDERS.event
            producer.send_all(orders, [made(n, f"c{n % 7}", float(n % 100), NOON) for n in range(500)])
        collector = opened.enter_context(collecting(own))
        declared = Declared.of(modules)
        pipelines = DeclaredPipelines.of(tuple(limits), modules)
        watched = Watched(collector.look, lambda: (look(own), Probes()), declared, pipelines=pipelines)
        address = opened.enter_context(served(own, watched))
        web = opened.enter_context(httpx.Client(base_url=address, timeout=60))
        web.headers.update(csrf(web))
        yield Shop(mark, address, web, own, folder)
        for each in Commands(own).all():
            if each.is_running and each.command.may_be_stopped:
                Commands(own).stop(each.id)


@pytest.fixture
def page(shop):
    errors = []
    with chromium() as browser:
        found = browser.new_page(viewport={"width": 1280, "height": 900})
        found.on("pageerror", lambda error: errors.append(str(error)))
        found.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        yield found
    expected = ("409", "ERR_CONNECTION")  # a refusal, and a console that is killed
    assert [each for each in errors if not any(known in each for known in expected)] == []


def go(page, shop, path, text):
    page.goto(f"{shop.address}/#/{path}")
    shows(page, text)


def shows(page, text, patience=PATIENCE):
    page.wait_for_function("text => document.body.innerText.includes(text)", arg=text, timeout=patience)


def press(page, verb, patience=PATIENCE):
    """Wait until a dialog's dry run has been answered, then carry it out."""
    page.wait_for_selector(f"dialog .foot button:enabled:text-is('{verb}')", timeout=patience).click()


@pytest.fixture
def broken(shop):
    """The module of the pipeline is broken after the console has read it, as by a bad deployment."""
    file = shop.folder / shop.old
    before = file.read_text()
    file.write_text(f"raise RuntimeError('the rules are not there')\n{before}")
    yield
    file.write_text(before)


@pytest.mark.long
@pytest.mark.timeout(150)
def test_a_pipeline_that_fails_at_once_says_why(shop, page, broken):
    go(page, shop, "pipelines", shop.pipeline)
    page.click(f"section[aria-label='{shop.pipeline}'] button:text('Start …')")
    page.select_option("dialog select", shop.old)
    page.click("dialog button:text('Check')")
    shows(page, f"penstock run {shop.pipeline} --module={shop.old}")
    press(page, "Start it")
    page.wait_for_selector(".failure:has-text('the rules are not there')", timeout=90_000)
    go(page, shop, "pipelines", "and failed")
    assert f"{shop.old}:1" in page.inner_text("main")
    go(page, shop, "commands", f"start {shop.pipeline}")
    go(page, shop, "audit", "pipeline.start")


@pytest.mark.timeout(120)
def test_what_has_changed_since_the_dry_run_is_not_done(shop):
    values = {"pipeline": shop.pipeline, "module": shop.old}
    seen = shop.ask("pipeline.start", dry_run=True, **values).json()["seen"]
    other = {**values, "module": shop.new}
    for asked, given in ((other, {"seen": seen}), (values, {}), (values, {"seen": "x"})):
        answer = shop.ask("pipeline.start", dry_run=False, **asked, **given)
        assert (answer.status_code, answer.json()["id"]) == (409, "console.stale")
    with RunRegistry(shop.settings).holding(shop.pipeline):  # somebody has started it at a terminal
        answer = shop.ask("pipeline.start", dry_run=False, seen=seen, **values)
        assert "runs already, as process" in answer.json()["message"]
    assert not [each for each in Commands(shop.settings).all() if each.is_running]


@pytest.mark.timeout(120)
def test_a_pipeline_that_another_machine_runs_is_not_started(shop):
    label = f"{shop.pipeline}.large"
    status = FlowStatus(label, "running", time.time(), time.time() - 60, "elsewhere/17")
    topic = status.identity.statuses
    Broker(shop.settings).ensure(topic, 1, {"cleanup.policy": "compact"})
    with Producer(shop.settings) as producer:
        producer.send_bytes(topic, status.identity.sink.encode(), status.to_json())
    for action, values in (
        ("pipeline.start", {"pipeline": shop.pipeline, "module": shop.old}),
        ("flow.swap", shop.of_flow(shop.new)),
    ):
        answer = shop.ask(action, dry_run=True, **values)
        assert "is run by process elsewhere, number 17" in answer.json()["message"]
    gone = replace(status, at=time.time() - 120)
    with Producer(shop.settings) as producer:
        producer.send_bytes(topic, status.identity.sink.encode(), gone.to_json())
    shown = shop.ask("pipeline.start", dry_run=True, pipeline=shop.pipeline, module=shop.old)
    assert shown.status_code == 200
    with Producer(shop.settings) as producer:
        producer.send_bytes(topic, status.identity.sink.encode(), None)


COMPARED = [
    {
        "flow": "large", "key": ["order"], "same": 1200, "different": 2, "only_live": 1, "only_shadow": 105,
        "windows": None, "apart": 0, "at": {},
        "examples": [
            {"kind": "different", "key": '{"order":17}', "live": '{"order":17,"price":91.5,"rule":"a"}',
             "shadow": '{"order":17,"price":91.5,"rule":"<b>b</b>"}'},
            {"kind": "only in live", "key": '{"order":"<img src=x onerror=alert(1)>"}',
             "live": '{"order":18,"price":99.0}', "shadow": None},
        ],
    }
]  # fmt: skip
AUDITED = {
    "replica": "copy", "equal": False, "seconds": 1.5,
    "tables": [{"table": "public.orders", "rows": 5000, "ranges": 12, "unsettled": 0,
                "differences": [{"table": "public.orders", "key": ["17"], "kind": "different",
                                 "columns": ["price"]}]}],
}  # fmt: skip


@pytest.fixture(scope="module")
def recorded(shop):
    """Commands that have ended, as their processes leave them."""

    def made(name, subject, words, document, code):
        command = Command(name, subject, words, (), prints_document=True)
        path = shop.settings.data / "commands" / f"20260101-000000-{name}"
        folder = CommandFolder.made(path, command, "ann")
        (path / "output").write_text(json.dumps(document))
        (path / "log").write_text("12:00:00 large batch 0: 3,000 rows in 12.1 s\n")
        folder.note_end(code, stopped=False)
        return path.name

    label = f"{shop.pipeline}.large"
    return {
        "diff": made("flow.diff", label, ("diff", shop.pipeline, "large", "--at-most=10"), COMPARED, 65),
        "audit": made("replica.audit", "copy", ("replica", "audit", "copy"), AUDITED, 65),
    }


@pytest.mark.timeout(120)
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_results_are_shown_and_pages_accessible(shop, page, recorded, scheme):
    page.emulate_media(color_scheme=scheme)
    go(page, shop, f"commands/{recorded['diff']}", "Keys that differ")
    text = page.inner_text("main")
    for part in ("beyond the gate of 10", "1,200", "105", "<img src=x onerror=alert(1)>", "<b>b</b>"):
        assert part in text, part
    assert page.query_selector("main img, main b") is None
    pages = {
        f"commands/{recorded['diff']}": "Keys that differ",
        f"commands/{recorded['audit']}": "1 rows differ",
        "commands": "compare",
        "pipelines": shop.pipeline,
        f"pipelines/{shop.pipeline}.large": "Versions",
    }
    for path, shown in pages.items():
        go(page, shop, path, shown)
        found = Axe().run(page)
        assert found.violations_count == 0, f"{path}: {found.generate_report()}"
    page.set_viewport_size({"width": 390, "height": 844})
    for path, shown in pages.items():
        go(page, shop, path, shown)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, path


def until(reached, what, patience=SPARK):
    deadline = time.monotonic() + patience
    while not (found := reached()):
        assert time.monotonic() < deadline, what
        time.sleep(0.5)
    return found


def alerts(shop):
    """How many alerts are in the topic, by committed transactions."""
    topic = loaded_modules((shop.old,))[0].ALERTS
    with Consumer(topic, shop.settings, group=f"count{time.time_ns()}") as consumer:
        return sorted(record.event.order for record in consumer.records(idle="2 seconds"))


def committed(shop, generation=None):
    """How far a flow, or its shadow, has read."""
    found = [each for each in flow_statuses(shop.settings) if each.label == f"{shop.pipeline}.large"]
    wanted = [each for each in found if (each.generation > 0) == bool(generation)]
    return wanted[0].rows if wanted else 0


@dataclass
class Dialogs:
    """The dialogs of a flow's versions, as a person clicks through them."""

    page: object
    shop: Shop
    patience: float = SPARK * 1000

    def begun(self, button, module, verb, *, at="", fill=None, address=None):
        """Open a dialog, choose the module, check, confirm; return the command that was begun."""
        page, path = self.page, at or f"pipelines/{self.shop.pipeline}.large"
        page.goto(f"{address or self.shop.address}/#/{path}")
        page.click(f"button:text('{button} …'):visible", timeout=self.patience)
        page.select_option("dialog select", module)
        if fill is not None:
            page.fill("dialog input[type=number]", fill)
        page.click("dialog button:text('Check')")
        press(page, verb, self.patience)
        page.wait_for_function("() => location.hash.startsWith('#/commands/')", timeout=self.patience)
        return page.evaluate("location.hash").rpartition("/")[2]

    def stop(self, path):
        self.page.goto(f"{self.shop.address}/#/{path}")
        self.page.click("button:text('Stop …')", timeout=self.patience)
        press(self.page, "Stop it", self.patience)


@contextmanager
def another_console(shop):
    """A console of its own process, which is killed at the end."""
    words = [sys.executable, "-m", "penstock.cli", "console", "-m", shop.old, "-m", shop.new, "--port", "0"]
    environment = {**os.environ, **shop.settings.environment()}
    console = subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        yield console.stdout.readline().split()[2].rstrip(";")
    finally:
        console.kill()
        console.communicate()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_flow_is_replaced_and_put_back_by_clicks(shop, page):
    """Start, shadow, compare, swap, roll back, each by its dialog; the console is killed during the swap."""
    dialogs, registry = Dialogs(page, shop), RunRegistry(shop.settings)
    dialogs.begun("Start", shop.old, "Start it", at="pipelines")
    until(lambda: committed(shop) >= 500, "the first version has read everything")
    again = shop.ask("pipeline.start", dry_run=True, pipeline=shop.pipeline, module=shop.old)
    assert again.status_code == 409  # pressed twice
    before = alerts(shop)
    assert set(before) == {n for n in range(500) if n % 100 > 90}

    shadow = dialogs.begun("Run a shadow", shop.new, "Run it")
    until(lambda: committed(shop, generation=True) >= 500, "the shadow has read everything")
    diff = dialogs.begun("Compare", shop.new, "Compare", fill="10")
    shows(page, "beyond the gate of 10", dialogs.patience)
    (found,) = shop.ended(diff)["document"]
    assert (found["same"], found["only_shadow"], found["only_live"]) == (45, 50, 0)
    assert shop.ask("flow.swap", dry_run=True, **shop.of_flow(shop.new)).status_code == 409  # it runs
    dialogs.stop(f"commands/{shadow}")
    assert shop.ended(shadow)["state"] == "stopped"
    dialogs.stop("pipelines")
    until(lambda: not registry.names(), "nothing runs any more")

    with another_console(shop) as address:
        swap = dialogs.begun("Swap", shop.new, "Swap", fill="50", address=address)
        both = shop.ask("flow.swap", dry_run=True, **shop.of_flow(shop.new))  # two people press it
        assert "is at work on it already" in both.json()["message"]
    assert shop.web.get("/api/command", params={"name": swap}).json()["state"] == "running"
    go(page, shop, f"commands/{swap}", f"penstock swap {shop.pipeline} large")
    shows(page, "The new version is in place", dialogs.patience)
    (done,) = shop.ended(swap)["document"]
    assert (done["swapped"], done["difference"]["only_shadow"]) == (True, 50)
    assert alerts(shop) == before

    back = dialogs.begun("Roll back", shop.old, "Roll back")
    assert shop.ended(back)["state"] == "done"
    assert alerts(shop) == before
    lines = {(each["action"], each["outcome"]) for each in shop.web.get("/api/audit").json()["lines"]}
    assert {("flow.swap", "ended, done"), ("flow.rollback", "ended, done")} <= lines
