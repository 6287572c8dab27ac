"""The files of the page, read once: a request names one of them, and never a path."""

from importlib.resources import files
from importlib.resources.abc import Traversable

_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def page_files(package: str = "penstock.console") -> dict[str, tuple[bytes, str]]:
    """Return all files of a package's folder `static` by their names in it, each with its type."""
    found: dict[str, tuple[bytes, str]] = {}
    _collect(files(package) / "static", "", found)
    return found


def _collect(folder: Traversable, prefix: str, found: dict[str, tuple[bytes, str]]) -> None:
    for each in folder.iterdir():
        name = prefix + each.name
        if each.is_dir():
            _collect(each, f"{name}/", found)
        else:
            kind = _TYPES.get("." + each.name.rpartition(".")[2])
            if kind is not None:
                found[name] = each.read_bytes(), f"{kind}; charset=utf-8"
