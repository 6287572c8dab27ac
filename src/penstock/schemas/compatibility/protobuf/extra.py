"""The extra that Protobuf needs: its compiler is installed only on demand."""

from importlib.util import find_spec

from penstock.errors import InvalidSchemaError

HINT = "install the extra: pip install 'penstock[protobuf]'"


def has_protobuf() -> bool:
    """Whether the compiler of .proto texts is installed."""
    return find_spec("grpc_tools") is not None


def require_protobuf() -> None:
    """Refuse a Protobuf schema where there is no compiler."""
    if not has_protobuf():
        raise InvalidSchemaError("Protobuf schemas can't be compiled here", hint=HINT)
