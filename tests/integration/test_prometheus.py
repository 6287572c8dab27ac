"""A real Prometheus scrapes the metrics, understands them, and takes the alert rules."""

import os
import subprocess
import sys
import time
from importlib.resources import files

import httpx
import pytest
from tests.lacking import required

from penstock.local.ports import any_free
from penstock.log import Broker, Groups

PATIENCE = 60.0


@pytest.fixture
def prometheus():
    return required("prometheus")


@pytest.fixture
def endpoint(settings):
    """The address of a process that serves the metrics."""
    port = any_free()
    command = [sys.executable, "-m", "penstock.cli", "metrics", "--port", str(port)]
    process = subprocess.Popen(command, env={**os.environ, **settings.environment()})
    yield f"127.0.0.1:{port}"
    process.terminate()
    assert process.wait(20) in (0, -15)


@pytest.fixture
def server(prometheus, endpoint, tmp_path):
    """The address of a Prometheus that scrapes the endpoint every second, with our alert rules."""
    (tmp_path / "alerts.yml").write_text(files("penstock.ops").joinpath("prometheus/alerts.yml").read_text())
    (tmp_path / "prometheus.yml").write_text(
        f"""
global: {{scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 1s}}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: penstock
    static_configs: [{{targets: ["{endpoint}"]}}]
"""
    )
    port = any_free()
    options = [
        "--config.file=prometheus.yml",
        "--storage.tsdb.path=data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([prometheus, *options], cwd=tmp_path, stdout=log, stderr=log)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait(20)


def asked(server, path, **parameters):
    try:
        return httpx.get(f"{server}/api/v1/{path}", params=parameters, timeout=5).json()["data"]
    except (httpx.HTTPError, KeyError, ValueError):
        return {}


def until(found):
    deadline = time.monotonic() + PATIENCE
    while not (answer := found()):
        assert time.monotonic() < deadline
        time.sleep(0.5)
    return answer


@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_real_prometheus_scrapes_and_answers(settings, server, unique):
    Broker(settings).ensure(unique, 1, {})
    Groups(settings).place(f"g-{unique}", {unique: {0: 0}})
    query = f'kafka_consumergroup_lag{{group="g-{unique}"}}'
    (found,) = until(lambda: asked(server, "query", query=query).get("result"))
    assert found["metric"]["topic"] == unique
    assert found["value"][1] == "0"
    (target,) = asked(server, "targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    (rules,) = asked(server, "rules")["groups"]
    assert {each["health"] for each in until(lambda: _evaluated(server))} == {"ok"}
    assert len(rules["rules"]) >= 5


def _evaluated(server):
    rules = asked(server, "rules")["groups"][0]["rules"]
    return rules if all(each["health"] != "unknown" for each in rules) else None
