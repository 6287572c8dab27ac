"""Java's error stream: noise is left out, everything else is passed on."""

import io

from penstock.process.spark.java_output import pass_on

SAID = b"""WARNING: Using incubator modules: jdk.incubator.vector
Setting default log level to "WARN".
Exception in thread "main"

Starting Streaming TransformWithStateInPandas Python worker.

Streaming TransformWithStateInPandas Python worker Completed execution of UDF: <bound method ...>.

java.lang.OutOfMemoryError: Java heap space
\tat org.apache.spark.Some
no end of line"""


def test_noise_is_left_out_and_everything_else_is_passed_on():
    written = []
    pass_on(io.BytesIO(SAID), written.append)
    assert b"".join(written).splitlines() == [
        b'Exception in thread "main"',
        b"",
        b"java.lang.OutOfMemoryError: Java heap space",
        b"\tat org.apache.spark.Some",
        b"no end of line",
    ]


def test_a_line_that_can_not_be_written_stops_nobody():
    written = []

    def write(line):
        if b"OutOfMemory" in line:
            raise OSError(28, "No space left on device")
        written.append(line)

    pass_on(io.BytesIO(SAID), write)
    assert written[-1] == b"no end of line"
