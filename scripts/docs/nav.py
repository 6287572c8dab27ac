"""The parts of the navigation that follow from files: `reference/` and `decisions/` in mkdocs.yml."""

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """MkDocs' hook: a folder in the navigation becomes its pages."""
    folder = Path(config["docs_dir"])
    config["nav"] = expanded(config["nav"], folder)
    return config


def expanded(nav: list[Any], pages: Path) -> list[Any]:
    """The navigation with each `name: folder/` as a section that begins with the folder's index."""
    found = []
    for entry in nav:
        ((name, value),) = entry.items() if isinstance(entry, dict) else [("", entry)]
        if isinstance(value, list):
            entry = {name: expanded(value, pages)}
        elif value.endswith("/"):
            entry = {name: _section(pages / value, value)}
        found.append(entry)
    return found


def _section(folder: Path, prefix: str) -> list[Any]:
    others = [path for path in folder.glob("*.md") if path.name != "index.md"]
    return [
        f"{prefix}index.md",
        *({_label(path): f"{prefix}{path.name}"} for path in sorted(others, key=lambda path: path.stem)),
    ]


def _label(path: Path) -> str:
    """A page's name there: its heading, of a package what stands behind `penstock.`."""
    heading = path.read_text().partition("\n")[0].removeprefix("# ").replace("`", "")
    return heading.removeprefix("penstock.")
