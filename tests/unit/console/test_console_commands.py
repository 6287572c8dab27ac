"""Background commands: begun once, watched across restarts, only of modules that were given."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest
from tests.console import HERE, NOWHERE, client, csrf
from tests.observed_system import system

from penstock.console.server import Watched
from penstock.control import command_process
from penstock.control.audit import last_lines, write_down
from penstock.control.command import Command
from penstock.control.command_folder import CommandFolder
from penstock.control.command_process import bound
from penstock.control.commands import Commands
from penstock.control.declared_pipeline import DeclaredPipeline, DeclaredPipelines
from penstock.control.flow_diff import Comparison
from penstock.control.run_registry import RunRegistry
from penstock.errors import FlowError, SettingsError
from penstock.identity import Identity
from penstock.ops.doctor.probes import Probes
from penstock.pipeline.generation import Generation, generation_on_disk

SHOP = DeclaredPipelines((DeclaredPipeline("shop.py", "shop", {"large": "1"}),))
OF_A_FLOW = {"pipeline": "shop", "flow": "large"}
ACTIONS = {
    "pipeline.start": {"pipeline": "shop"},
    "flow.shadow": OF_A_FLOW,
    "flow.discard": OF_A_FLOW,
    "flow.diff": OF_A_FLOW,
    "flow.swap": OF_A_FLOW,
    "flow.rollback": OF_A_FLOW,
    "replica.audit": {"name": "copy"},
    "command.stop": {"id": "20260101-000000-abcdef"},
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Settings of a data folder, and a working folder for modules."""
    monkeypatch.chdir(tmp_path)
    return replace(NOWHERE, data=tmp_path / "data")


def ended(commands, id):
    deadline = time.monotonic() + 60
    while commands.run(id).is_running:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return commands.run(id)


def listing(*words, **changes):
    return Command("pipeline.start", "shop", ("topics", *words), claims=("shop",), **changes)


BROKEN = listing("plan", "broken.py")


def test_a_command_that_fails_says_why_and_is_written_down(here, tmp_path):
    (tmp_path / "broken.py").write_text("raise RuntimeError('the rules are not there')\n")
    commands = Commands(here)
    id = commands.start(BROKEN, "ann")
    found = ended(commands, id)
    assert (found.state, found.code, found.user) == ("failed", 78, "ann")
    assert "the rules are not there" in found.error
    assert "broken.py:1" in found.hint
    assert Commands(here).run(id) == found  # another console, too
    for _ in range(100):
        lines = last_lines(here.data)
        if lines:
            break
        time.sleep(0.05)
    assert (lines[0]["user"], lines[0]["outcome"].partition(":")[0]) == ("ann", "ended, failed")


def test_of_two_that_press_at_once_one_begins(here, tmp_path):
    (tmp_path / "broken.py").write_text("import time\ntime.sleep(2)\nraise RuntimeError\n")
    commands = Commands(here)
    id = commands.start(BROKEN, "ann")
    for other in (commands, Commands(here)):
        with pytest.raises(FlowError, match="at work on it already, begun by ann"):
            other.start(BROKEN, "bob")
    commands.start(replace(BROKEN, claims=("other",)), "bob")
    ended(commands, id)
    assert len(commands.all()) == 2


def test_so_many_are_at_work_at_once(here, tmp_path):
    (tmp_path / "broken.py").write_text("import time\ntime.sleep(60)\n")
    commands = Commands(here)
    begun = [commands.start(replace(BROKEN, name="flow.diff", claims=(f"{n}",)), "ann") for n in range(4)]
    with pytest.raises(FlowError, match="4 commands are at work already"):
        commands.start(replace(BROKEN, name="flow.diff", claims=("5",)), "ann")
    for id in begun:
        commands.stop(id)
    assert {ended(commands, id).state for id in begun} == {"stopped"}


def test_a_command_outlives_who_began_it(here, tmp_path):
    """The console is killed with -9; another one knows what came of what it had begun."""
    (tmp_path / "broken.py").write_text("import time\ntime.sleep(3)\nraise RuntimeError('too late')\n")
    program = (
        "import sys; from pathlib import Path; from penstock.settings import Settings;"
        "from penstock.control.command import Command; from penstock.control.commands import Commands;"
        "settings = Settings(kafka={'bootstrap.servers': '127.0.0.1:1'}, data=Path('data'));"
        "command = Command('pipeline.start', 'shop', ('topics', 'plan', 'broken.py'), ('shop',));"
        "print(Commands(settings).start(command, 'ann'), flush=True); sys.stdin.read()"
    )
    console = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    id = console.stdout.readline().strip()
    console.kill()
    console.wait()
    console.stdin.close()
    console.stdout.close()
    commands = Commands(here)
    assert commands.run(id).is_running
    assert "too late" in ended(commands, id).error


def test_a_command_whose_process_was_killed_is_no_running_one(here, tmp_path):
    (tmp_path / "broken.py").write_text("import time\ntime.sleep(60)\n")
    commands = Commands(here)
    id = commands.start(BROKEN, "ann")
    watcher = commands.folder(id).process
    for child in (*watcher.children(), watcher):
        child.kill()
    found = ended(commands, id)
    assert (found.state, found.error) == (
        "failed",
        "its process is gone, and has not said how it ended",
    )


def test_a_command_that_outlives_its_watcher_is_at_work_and_can_be_stopped(here, tmp_path):
    (tmp_path / "broken.py").write_text("import time\ntime.sleep(60)\n")
    commands = Commands(here)
    id = commands.start(BROKEN, "ann")
    until(lambda: (commands.folder(id).path / "child.json").exists())
    commands.folder(id).process.kill()
    until(lambda: commands.folder(id).process is None)
    assert commands.run(id).is_running
    with pytest.raises(FlowError, match="at work on it already"):
        commands.start(BROKEN, "bob")
    commands.stop(id)
    assert not commands.run(id).is_running


def test_the_end_is_written_down_once_there_is_room_again(tmp_path, monkeypatch):
    folder = CommandFolder.made(tmp_path / "c", BROKEN, "ann")
    write, full = CommandFolder._write, iter([True, True])

    def on_a_full_disk(self, name, document):
        if next(full, False):
            raise OSError("No space left on device")
        write(self, name, document)

    monkeypatch.setattr(CommandFolder, "_write", on_a_full_disk)
    monkeypatch.setattr(command_process.time, "sleep", lambda _: None)
    command_process._note_end(folder, 0, stopped=False)
    assert folder.run().state == "done"


def test_a_log_is_bounded_also_on_a_full_disk(tmp_path, monkeypatch):
    log = tmp_path / "log"
    log.write_bytes(b"x" * 1_000)

    def full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(command_process.shutil, "copyfile", full)
    bound(log, 500)
    assert log.stat().st_size == 0
    bound(tmp_path / "not there", 500)


def until(holds):
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_log_of_months_is_bounded(tmp_path):
    folder = CommandFolder.made(tmp_path / "c", BROKEN, "ann")
    log = tmp_path / "c" / "log"
    with log.open("ab") as writer:
        writer.write(b"x" * 999 + b"\n")
        writer.flush()
        bound(log, 500)
        assert (log.stat().st_size, len(folder.log())) == (0, 1000)
        writer.write(b"on\n")
        writer.flush()
    assert folder.log() == "on\n"


def test_old_commands_are_removed(here, tmp_path):
    for number in range(70):
        folder = CommandFolder.made(here.data / "commands" / f"20260101-0000{number:02}-x", BROKEN, "ann")
        folder.note_end(0, stopped=False)
    (tmp_path / "broken.py").write_text("raise RuntimeError\n")
    commands = Commands(here)
    ended(commands, commands.start(BROKEN, "ann"))
    assert len(commands.all()) == 61


HOLDING = (
    "import sys, time; from pathlib import Path; from penstock.settings import Settings;"
    "from penstock.control.run_registry import RunRegistry; from penstock.errors import FlowError;"
    "registry = RunRegistry(Settings(data=Path('data')));\n"
    "try:\n"
    "    with registry.holding('shop', 'swap'):\n"
    "        print('held', flush=True); sys.stdin.read()\n"
    "except FlowError as error:\n"
    "    print(error.message, flush=True)\n"
)


def test_of_processes_that_take_a_pipeline_at_once_one_has_it(here, tmp_path):
    all_of_them = [
        subprocess.Popen(
            [sys.executable, "-c", HOLDING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
        )
        for _ in range(4)
    ]
    said = [each.stdout.readline().strip() for each in all_of_them]
    assert said.count("held") == 1
    assert sum("is held by a swap" in each for each in said) == 3
    registry = RunRegistry(here)
    with pytest.raises(FlowError, match="held by a swap"):
        registry.stoppable("shop")
    for each in all_of_them:
        each.communicate()
    assert registry.names() == []


def test_what_a_killed_process_held_is_free(here, tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    )
    holder.stdout.readline()
    assert RunRegistry(here).process("shop").pid == holder.pid
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    with RunRegistry(here).holding("shop"):
        assert RunRegistry(here).process("shop").pid == os.getpid()
    assert RunRegistry(replace(here, namespace="team")).process("shop") is None


def watched(pipelines=SHOP):
    return Watched(system, lambda: (system(), Probes()), pipelines=pipelines)


@pytest.fixture
def web(here):
    with client(here, watched()) as made:
        yield made


def act(web, action, dry_run=False, headers=None, **values):
    asked = {"action": action, "dry_run": dry_run, **values}
    return web.post("/api/actions", json=asked, headers=csrf(web) if headers is None else headers)


@pytest.mark.parametrize("action", ACTIONS)
def test_strangers_begin_nothing(here, action):
    values = ACTIONS[action]
    with client(here, watched(), token="correct horse battery") as web:
        assert act(web, action, headers={}, **values).json()["id"] == "console.token"
    with client(here, watched()) as web:
        own = csrf(web)
        for headers in ({}, {"x-penstock-csrf": "forged"}, {"x-penstock-csrf": own["x-penstock-csrf"] + "x"}):
            assert act(web, action, headers=headers, **values).json()["id"] == "console.csrf"
        for origin in ("https://evil.example", "null", f"{HERE}.evil.example"):
            answer = act(web, action, headers={**own, "origin": origin}, **values)
            assert answer.json()["id"] == "console.origin"
    with client(here, watched(), is_read_only=True) as web:
        assert act(web, action, **values).json()["id"] == "console.read-only"
    assert not (here.data / "commands").exists()
    assert last_lines(here.data) == []


@pytest.mark.parametrize(
    "module", ["evil.py", "./evil.py", "evil", "../evil.py", "os", "shop.py/../evil.py", "shop.py ", ""]
)
@pytest.mark.parametrize("action", [name for name, values in ACTIONS.items() if "pipeline" in values])
def test_a_module_that_was_not_given_is_never_imported(web, here, tmp_path, action, module):
    for name in ("evil.py", "shop.py "):
        (tmp_path / name).write_text(f"open({str(tmp_path / 'hacked')!r}, 'w')\n")
    for dry_run in (True, False):
        answer = act(web, action, dry_run, module=module, **ACTIONS[action])
        assert answer.status_code in (409, 422), answer.text
    assert not (tmp_path / "hacked").exists()
    assert not (here.data / "commands").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"pipeline": "../shop"},
        {"pipeline": "<script>"},
        {"pipeline": ["shop"]},
        {"flow": "--discard"},
        {"flow": "large/../../x"},
        {"flow": "<img src=x onerror=alert(1)>"},
        {"at_most": "5"},
        {"at_most": True},
        {"at_most": -1},
        {"at_most": 1.5},
        {"by": "--help"},
        {"by": [1]},
        {"by": ["x" * 300]},
        {"ignore": ["x"] * 101},
    ],
)
def test_what_is_no_flow_of_a_module_is_refused(web, here, changes):
    answer = act(web, "flow.swap", dry_run=True, **{**OF_A_FLOW, **changes})
    assert answer.status_code in (409, 422), answer.text
    assert not (here.data / "commands").exists()


def test_a_body_has_its_bounds(web):
    answer = act(web, "flow.swap", **OF_A_FLOW, by=["x" * 300_000])
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "name", ["../../etc", "/etc/passwd", ".lock", "", "%2e%2e", "20260101-000000-abcdef"]
)
def test_a_command_is_one_of_those_that_were_begun(web, here, name):
    (here.data / "commands").mkdir(parents=True)
    assert web.get("/api/command", params={"name": name}).status_code in (400, 409)
    assert act(web, "command.stop", dry_run=True, id=name).status_code in (409, 422)


def test_a_column_is_never_an_option():
    words = Comparison(3, ("--begin-anew", "a b"), ("-m",)).words
    assert words == ("--at-most=3", "--by=--begin-anew", "--by=a b", "--ignore=-m")
    with pytest.raises(SettingsError):
        Comparison(-1)


def test_a_pipeline_of_two_modules_has_to_be_named_with_one():
    two = DeclaredPipelines((*SHOP.every, DeclaredPipeline("new.py", "shop", {"large": "2"})))
    with pytest.raises(SettingsError, match="several modules"):
        two.find("shop", None)
    assert two.find("shop", "new.py").version("large") == "2"


def test_masks_hide_what_commands_quote(here):
    folder = CommandFolder.made(
        here.data / "commands" / "20260101-000000-a", replace(BROKEN, prints_document=True), "ann"
    )
    (folder.path / "log").write_text("error data.event: card is 4111-1111\n  → use another\n")
    example = {"kind": "different", "key": '{"card":"4111-1111"}', "live": "4111-1111", "shadow": None}
    (folder.path / "output").write_text(json.dumps([{"flow": "large", "same": 3, "examples": [example]}]))
    folder.note_end(65, stopped=False)
    from penstock.console.masking import Masks

    with client(here, watched(), masks=Masks.of("card")) as web:
        answer = web.get("/api/command", params={"name": "20260101-000000-a"})
        assert "4111" not in answer.text
        assert answer.json()["document"][0]["same"] == 3
    with client(here, watched()) as web:
        assert "4111" in web.get("/api/command", params={"name": "20260101-000000-a"}).text


def test_masks_hide_why_an_action_failed(here):
    for outcome in ("done: 3 sent again", "failed: card is 4111-1111", "ended, failed: card is 4111-1111"):
        write_down(here.data, "pipeline.start", "shop", outcome, "ann")
    from penstock.console.masking import Masks

    with client(here, watched(), masks=Masks.of("card")) as web:
        lines = web.get("/api/audit").json()["lines"]
    assert [each["outcome"] for each in lines] == ["ended, failed: •••", "failed: •••", "done: 3 sent again"]
    with client(here, watched()) as web:
        assert "4111" in web.get("/api/audit").text


def test_which_versions_there_are_is_known_without_spark(tmp_path):
    known = Generation(current=3, building=4, shadow=True, made_by="2 struct<a:int>")
    home = tmp_path / "flows" / "shop" / "large"
    home.mkdir(parents=True)
    here, identity = replace(NOWHERE, data=tmp_path), Identity.of("", "shop", "large")
    assert generation_on_disk(here, identity) == Generation()
    import msgspec

    (home / "generation.json.ready").write_bytes(msgspec.json.encode(known))
    assert generation_on_disk(here, identity) == known
    assert generation_on_disk(replace(here, checkpoints="s3a://flows"), identity) is None
    assert generation_on_disk(replace(here, checkpoints=f"file://{tmp_path}/flows"), identity) == known


def test_the_process_of_a_command_is_small(here, tmp_path):
    (tmp_path / "broken.py").write_text("import time\ntime.sleep(60)\n")
    commands = Commands(here)
    id = commands.start(BROKEN, "ann")
    time.sleep(1)
    process = psutil.Process(commands.folder(id).process.pid)
    assert process.memory_info().rss < 60e6
    commands.stop(id)
