"""A receiver as a process of its own, to be killed: `python inlet_receiver.py BROKER NAME PORT…`.

It listens by all ways and writes what it receives to the topics NAME.<way>. Beside that it reads NAME.log as
a member of a group, and reports each number on stdout.
"""

import os
import signal
import sys
from threading import Event as Flag
from threading import Thread

from inlet_readings import Reading

from penstock.inlets import Inlet, Messages, Tcp, Udp, ZeroMq
from penstock.log import Consumer, Topic, from_beginning
from penstock.settings import Settings

WAYS = {
    "udp": Udp,
    "tcp": Tcp,
    "acknowledged": lambda port: Tcp(port, acknowledge=True),
    "sub": lambda port: ZeroMq("sub", connect=f"tcp://127.0.0.1:{port}"),
    "pull": lambda port: ZeroMq("pull", bind=f"tcp://127.0.0.1:{port}"),
}


def read(topic, settings, stopped):
    with Consumer(topic, settings, group=topic.name, member="reader", start=from_beginning()) as consumer:
        while not stopped.is_set():
            for record in consumer.records(idle="200 ms"):
                os.write(1, b"%d\n" % record.event.number)


def main(server, name, *ports):
    settings, stopped = Settings(kafka={"bootstrap.servers": server}), Flag()
    inlets = [
        Inlet(
            source(int(port)), Messages(Topic(f"{name}.{way}", Reading), "{sensor} {number}", "at"), settings
        )
        for (way, source), port in zip(WAYS.items(), ports, strict=True)
    ]
    threads = [Thread(target=inlet.run) for inlet in inlets]
    threads.append(Thread(target=read, args=(Topic(f"{name}.log", Reading), settings, stopped)))
    signal.signal(signal.SIGTERM, lambda *_: [each.stop() for each in inlets] + [stopped.set()])
    for thread in threads:
        thread.start()
    os.write(1, b"ready\n")
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
