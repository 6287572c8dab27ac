"""The package that makes and reads indexes, which is not installed everywhere."""

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.errors import SetupError


@contextmanager
def needing_tantivy() -> Iterator[None]:
    """Say what to install if what is imported here needs tantivy and it is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "tantivy":
            raise
        raise SetupError(
            "a search index needs the package tantivy", hint="pip install 'penstock[search]'"
        ) from error
