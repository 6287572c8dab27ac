"""A console on a recorded system, in this process or on a port."""

import socket
import threading
import time
from contextlib import contextmanager

import uvicorn
from starlette.testclient import TestClient

from penstock.console.masking import Masks
from penstock.console.security import ConsoleSecurity
from penstock.console.server import Console, Watched, server_config
from penstock.ops.doctor.probes import Probes
from penstock.settings import Settings
from tests.observed_system import system

HERE = "http://127.0.0.1:9480"
LIVE, TAIL = "ws://127.0.0.1:9480/api/live", "ws://127.0.0.1:9480/api/tail?name=orders"
NOWHERE = Settings(kafka={"bootstrap.servers": "127.0.0.1:1"})


def security(address=HERE, **changes):
    made = {"token": None, "origins": frozenset({address}), "masks": Masks()}
    return ConsoleSecurity(**(made | changes))


def console(settings=NOWHERE, watched=None, **changes):
    found = Watched(system, lambda: (system(), Probes()))
    return Console(settings, watched or found, security(**changes))


@contextmanager
def client(settings=NOWHERE, watched=None, **changes):
    """A client of an application in this process, which looks as long as it is open."""
    app = console(settings, watched, **changes).application()
    with TestClient(app, base_url=HERE, raise_server_exceptions=False) as made:
        yield made


def csrf(web):
    return {"x-penstock-csrf": web.get("/api/session").json()["csrf"]}


@contextmanager
def served(settings, watched, *, extensions=(), **changes):
    """A console that listens on a port, in a thread of this process; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        made = Console(settings, watched, security(address, **changes), extensions)
        server = uvicorn.Server(server_config(made.application()))
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        try:
            yield address
        finally:
            made.stopping.set()
            server.should_exit = True
            thread.join()
