"""Named crash points: places where a test may stop the world; free when nobody listens.

A harness listens on a socket whose path is in PENSTOCK_POINTS. Code that passes a point tells its name and
waits for the answer; a harness that wants a crash there kills the process instead of answering.
"""

import os
import socket

VARIABLE = "PENSTOCK_POINTS"
_PATIENCE = 60.0


def reach(point: str) -> None:
    """Pass a point; in a harness, wait until it lets us go on."""
    address = os.environ.get(VARIABLE)
    if address is not None:
        _tell(address, point)


def _tell(address: str, point: str) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(_PATIENCE)
        try:
            line.connect(address)
            line.sendall(f"{os.getpid()} {point}\n".encode())
            line.recv(1)
        except OSError:
            return  # the harness is gone: there is nobody to wait for
