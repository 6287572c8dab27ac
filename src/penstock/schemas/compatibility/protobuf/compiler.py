"""Compiles .proto text with the protoc that grpcio-tools brings along."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from penstock.errors import InvalidSchemaError

MAIN = "schema.proto"
_TIMEOUT_S = 30


def compile_proto(
    text: str, imports: Mapping[str, str], compiled: Mapping[str, FileDescriptorProto]
) -> list[FileDescriptorProto]:
    """The descriptors of a text and of what it imports, the text's own last."""
    with TemporaryDirectory(prefix="penstock-proto-") as name:
        folder = Path(name)
        _write(folder, {**imports, MAIN: text})
        (folder / "compiled.bin").write_bytes(FileDescriptorSet(file=compiled.values()).SerializeToString())
        _run(folder)
        return list(FileDescriptorSet.FromString((folder / "out.bin").read_bytes()).file)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    root = (folder / "proto").resolve()
    for name, text in texts.items():
        path = (root / name).resolve()
        if not path.is_relative_to(root):
            hint = "name references as they are imported, such as common/money.proto"
            raise InvalidSchemaError(f"reference {name!r} leads out of its folder", hint=hint)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _run(folder: Path) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{folder / 'proto'}", "--include_imports"]
    command += [
        f"--descriptor_set_in={folder / 'compiled.bin'}",
        f"--descriptor_set_out={folder / 'out.bin'}",
        MAIN,
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise _complaint(done.stderr)


def _complaint(output: str) -> InvalidSchemaError:
    lines = [line for line in output.splitlines() if line.strip() and ": warning:" not in line]
    first = lines[0] if lines else "protoc failed"
    place = re.match(r"(?P<file>[^:]+):(?P<line>\d+):(?P<column>\d+): (?P<message>.*)", first)
    hint = "correct the .proto text; imports are given as references"
    if place is None:
        return InvalidSchemaError(first.removeprefix(f"{MAIN}: "), hint=hint)
    file = "" if place["file"] == MAIN else f"{place['file']}, "
    where = f"{file}line {place['line']}, column {place['column']}"
    return InvalidSchemaError(place["message"], where=where, hint=hint)
