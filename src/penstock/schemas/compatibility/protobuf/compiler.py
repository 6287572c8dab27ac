"""Compiles .proto text with the protoc that grpcio-tools brings along."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from penstock.errors import InvalidSchemaError

MAIN = "schema.proto"
_TIMEOUT_S = 30
_NAME = re.compile(r"[^\x00-\x1f\x7f\"\\/]{1,255}")
_NAMING = "name references as they are imported, such as common/money.proto"
# protoc's own log, beside what it has against the text.
_LOG = re.compile(r"WARNING: All log messages before|[IWEF]\d{4} \d\d:")
Protoc = Callable[[list[str]], tuple[int, str]]


def compile_proto(
    text: str, imports: Mapping[str, str], compiled: Mapping[str, FileDescriptorProto]
) -> list[FileDescriptorProto]:
    """The descriptors of a text and of what it imports, the text's own last."""
    main = _main({*imports, *compiled})
    with TemporaryDirectory(prefix="penstock-proto-") as name:
        folder = Path(name)
        _write(folder / "proto", {**imports, main: text})
        (folder / "compiled.bin").write_bytes(FileDescriptorSet(file=compiled.values()).SerializeToString())
        _run(folder, main)
        return list(FileDescriptorSet.FromString((folder / "out.bin").read_bytes()).file)


def check_names(names: Iterable[str]) -> None:
    """Refuse references that can't be imported by their name."""
    for name in names:
        if name.startswith("/") or ".." in name.split("/"):
            raise InvalidSchemaError(f"reference {name[:100]!r} leads out of its folder", hint=_NAMING)
        if len(name) > 1000 or not all(_NAME.fullmatch(part) and part.strip(".") for part in name.split("/")):
            raise InvalidSchemaError(f"a reference can't be called {name[:100]!r}", hint=_NAMING)


def _main(taken: set[str]) -> str:
    return MAIN if MAIN not in taken else _main_beside(taken)


def _main_beside(taken: set[str]) -> str:
    return next(name for number in count() if (name := f"schema-{number}.proto") not in taken)


def _write(folder: Path, texts: Mapping[str, str]) -> None:
    for name, text in texts.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        except OSError as error:
            hint = "give every reference a name that is no other's folder"
            raise InvalidSchemaError(
                f"the reference {name[:100]!r} is no file: {error.strerror}", hint=hint
            ) from None
        except UnicodeEncodeError as error:
            raise InvalidSchemaError(f"not a text: {error}", where=name) from None


def _run(folder: Path, main: str) -> None:
    arguments = [
        f"-I{folder / 'proto'}",
        "--include_imports",
        f"--descriptor_set_in={folder / 'compiled.bin'}",
        f"--descriptor_set_out={folder / 'out.bin'}",
        main,
    ]
    code, said = _protoc(arguments)
    if code != 0:
        raise _complaint(said.replace(f"{folder / 'proto'}/", ""), main)


def in_child(arguments: list[str]) -> tuple[int, str]:
    """Run protoc in a process of its own."""
    command = [sys.executable, "-m", "grpc_tools.protoc", *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise InvalidSchemaError(f"protoc took more than {_TIMEOUT_S} s", hint="make it smaller") from None
    return done.returncode, done.stderr


def in_this_process(arguments: list[str]) -> tuple[int, str]:
    """Run protoc right here, in a millisecond: for a process that has one thread and may be lost."""
    from grpc_tools import protoc  # type: ignore[import-untyped]

    well_known = Path(protoc.__file__).with_name("_proto")  # which protoc adds by itself when it is a program
    kept = os.dup(2)
    with TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            code = protoc.main(["protoc", *arguments, f"-I{well_known}"])
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        said.seek(0)
        return code, said.read().decode(errors="replace")


_protoc: Protoc = in_child


def run_protoc(how: Protoc) -> None:
    """Choose how protoc is run from now on."""
    global _protoc
    _protoc = how


def _complaint(output: str, main: str) -> InvalidSchemaError:
    lines = [
        line
        for line in output.splitlines()
        if line.strip() and ": warning:" not in line and not _LOG.match(line)
    ]
    first = lines[0] if lines else "protoc failed"
    place = re.match(r"(?P<file>[^:]+):(?P<line>\d+):(?P<column>\d+): (?P<message>.*)", first)
    hint = "correct the .proto text; imports are given as references"
    if place is None:
        return InvalidSchemaError(first.removeprefix(f"{main}: "), hint=hint)
    file = "" if place["file"] == main else f"{place['file']}, "
    where = f"{file}line {place['line']}, column {place['column']}"
    return InvalidSchemaError(place["message"], where=where, hint=hint)
