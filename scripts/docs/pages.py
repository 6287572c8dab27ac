"""Which file of the repository is which page of the site."""

import posixpath
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
_ALONE = {"README.md": "overview.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
_APPS = "src/penstock/apps/"
_CODE = (".py", ".sh", ".toml", ".sql", ".html", ".js", ".java")


def written() -> list[str]:
    """The files that are pages, as paths within the repository; pictures are not."""
    folders = sorted((ROOT / "docs").rglob("*.md")) + sorted((ROOT / _APPS).glob("*/README.md"))
    return [*_ALONE, *(path.relative_to(ROOT).as_posix() for path in folders)]


def page_of(path: str) -> str | None:
    """The page that a file of the repository becomes; None if it is no page and no picture.

    >>> page_of("docs/how-to/outbox.md"), page_of("src/penstock/apps/ads/README.md"), page_of("README.md")
    ('how-to/outbox.md', 'applications/ads.md', 'overview.md')
    >>> page_of("src/penstock/apps/ads/pipeline.py")
    'code/src/penstock/apps/ads/pipeline.py.md'
    """
    if path in _ALONE:
        return _ALONE[path]
    if path.startswith("docs/") and not path.endswith(_CODE):
        return path.removeprefix("docs/").replace("README.md", "index.md")
    if path.startswith(_APPS) and path.endswith("/README.md"):
        return f"applications/{PurePosixPath(path).parent.name}.md"
    return f"code/{path}.md" if path.endswith(_CODE) else None


def relative(page: str, other: str) -> str:
    """The way from one page to another.

    >>> relative("how-to/outbox.md", "log.md")
    '../log.md'
    """
    return posixpath.relpath(other, posixpath.dirname(page) or ".")
