"""The metrics over HTTP: one look for all who ask, and strangers only with the token."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient
from tests.observed_system import system
from tests.unit.ops.test_exposition import parsed

from penstock.errors import SettingsError
from penstock.ops.metrics_server import RecentLook, application, checked_token, serve
from penstock.settings import Settings

HERE = "http://127.0.0.1:9477"


def test_the_text_is_served_with_its_version():
    answer = TestClient(application(system), base_url=HERE).get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert parsed(answer.text)["penstock_dead_letters", ("topic", "orders")] == 4


def test_with_a_token_nobody_comes_in_without_it():
    web = TestClient(application(system, token="s3cret"))
    assert web.get("/metrics").status_code == 401
    assert web.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert web.get("/metrics", headers={"Authorization": "Bearer s3cret"}).status_code == 200
    assert web.get("/metrics", auth=("prometheus", "s3cret")).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:9477", "10.0.0.1", "", "[::"])
def test_without_a_token_no_other_name_leads_here(host):
    looks = []
    open, guarded = (
        TestClient(application(lambda: looks.append(1) or system(), each)) for each in (None, "s")
    )
    assert open.get("/metrics", headers={"Host": host}).status_code == 421
    assert looks == []
    answer = guarded.get("/metrics", headers={"Host": host, "Authorization": "Bearer s"})
    assert (answer.status_code, looks) == (200, [1])


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9477", "127.0.0.2:80", "[::1]:9477"])
def test_this_machine_has_several_names(host):
    assert TestClient(application(system)).get("/metrics", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("section", [{}, {"token": " "}])
def test_strangers_are_not_served_without_a_token(section):
    with pytest.raises(SettingsError, match="token"):
        serve(Settings(metrics=section), host="0.0.0.0")


def test_the_token_comes_from_the_settings(tmp_path):
    found = Settings.load(tmp_path, {"PENSTOCK_METRICS_TOKEN": "s3cret"})
    assert checked_token(found, "0.0.0.0") == "s3cret"
    assert "s3cret" not in repr(found)
    assert (
        Settings.load(tmp_path, found.with_kafka(bootstrap_servers="b:1").environment()).metrics
        == found.metrics
    )
    with pytest.raises(SettingsError, match="unknown setting 'colour'"):
        checked_token(Settings(metrics={"colour": "red"}), "127.0.0.1")


def test_those_who_ask_at_the_same_time_share_a_look():
    looks, slow = [], threading.Event()

    def look():
        looks.append(time.monotonic())
        slow.wait(0.2)
        return system()

    recent = RecentLook(look, fresh=60.0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: recent(), range(8)))
    assert len(looks) == 1


def test_an_old_look_is_taken_again():
    looks = []
    recent = RecentLook(lambda: looks.append(1) or system(), fresh=0.0)
    recent()
    time.sleep(0.01)
    recent()
    assert len(looks) == 2
