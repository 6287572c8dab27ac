"""What is wrong with a built site: links to nothing, and whatever would be fetched from elsewhere."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}


class _Page(HTMLParser):
    """The ids of a page, where it leads to, and what a browser would load for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id" and value:
                self.ids.add(value)
            elif (tag, name) in _FETCHED and value:
                self.fetched.append(value)
            elif tag == "a" and name == "href" and value:
                self.links.append(value)


def problems(site: Path) -> list[str]:
    """Broken links and anchors, and addresses of other hosts that a page would load something from."""
    pages = {path: _Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        found += [f"{name} loads {each}" for each in page.fetched if urlsplit(each).netloc]
        found += [f"{name} leads to {each}" for each in page.links if not _leads(each, path, site, pages)]
        found += [f"{name} lacks {each}" for each in page.fetched if not _leads(each, path, site, pages)]
    return found


def _leads(link: str, page: Path, site: Path, pages: dict[Path, _Page]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return True
    start = site if parts.path.startswith("/") else page.parent
    there = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else page
    there = there / "index.html" if there.is_dir() else there
    if not there.is_file():
        return False
    anchor = unquote(parts.fragment)
    return not anchor or anchor.startswith("__") or there not in pages or anchor in pages[there].ids
