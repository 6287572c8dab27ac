"""delta-rs: imported when a table is used, and its errors as ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import SetupError, SinkError

if TYPE_CHECKING:
    from deltalake import CommitProperties, DeltaTable


class ConflictError(Exception):
    """Another commit came first: what was read before it has to be read again."""


def check_installed() -> None:
    """Refuse to go on without delta-rs."""
    try:
        import deltalake  # noqa: F401
    except ImportError as error:
        raise SetupError(
            "a lake table needs the package deltalake, which is not installed",
            hint="pip install 'penstock[lake]'",
        ) from error


def is_table(root: Path) -> bool:
    """Whether a folder holds a Delta table."""
    from deltalake import DeltaTable

    return root.exists() and DeltaTable.is_deltatable(str(root))


def load(root: Path) -> "DeltaTable":
    """Return a table as it is now."""
    from deltalake import DeltaTable

    with asking("read its log", root):
        return DeltaTable(str(root))


def properties(transactions: dict[str, int], retries: int | None = None) -> "CommitProperties":
    """Return what a commit carries: the numbers of applications, by which another commit of theirs fails."""
    from deltalake import CommitProperties, Transaction

    listed = [Transaction(name, number) for name, number in transactions.items()]
    return CommitProperties(app_transactions=listed, max_commit_retries=retries)


@contextmanager
def asking(what: str, root: Path) -> Iterator[None]:
    """Turn errors of delta-rs and of the file system into ours."""
    from deltalake.exceptions import CommitFailedError, DeltaError

    try:
        yield
    except CommitFailedError as error:
        raise ConflictError(str(error)) from error
    except (DeltaError, OSError, ValueError) as error:
        raise SinkError(
            f"table {str(root)!r}: can't {what}: {error}", hint="see that the folder can be written"
        ) from error
