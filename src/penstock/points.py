"""Named crash points: places where a test may stop the world; free when nobody listens.

A harness listens on a socket whose path is in PENSTOCK_POINTS. Code that passes a point sends its name and
waits for the answer; a harness that wants a crash there kills the process instead of answering.
"""

import os
import socket

VARIABLE = "PENSTOCK_POINTS"
_PATIENCE = 600.0


def reach(point: str, subject: str = "") -> None:
    """Pass a point, with the flow or sink it is about; in a harness, wait until it lets us go on."""
    address = os.environ.get(VARIABLE)
    if address is not None:
        _send(address, f"{os.getpid()} {point} {subject}\n")


def _send(address: str, line: str) -> None:
    with socket.socket(socket.AF_UNIX) as harness:
        try:
            harness.connect(address)  # without a timeout: that would fail at once when many come together
            harness.settimeout(_PATIENCE)
            harness.sendall(line.encode())
            harness.recv(1)
        except OSError:
            return  # the harness is gone: there is nobody to wait for
