"""The pages of the site, gathered from all over the repository into one folder."""

import shutil
from pathlib import Path

from scripts.docs import reference
from scripts.docs.code import code_page
from scripts.docs.dialect import adapted
from scripts.docs.links import Links
from scripts.docs.pages import ROOT, page_of, relative, written

_THEME = Path(__file__).parent / "theme"
_PICTURES = (".svg", ".png")
_MERMAID = "assets/mermaid.js"


def stage(folder: Path, mermaid: Path) -> Links:
    """Write all pages, pictures and assets into an empty folder; `mermaid` draws diagrams."""
    shutil.rmtree(folder, ignore_errors=True)
    links = Links()
    for path in written():
        page = page_of(path) or path
        _write(folder / page, _drawn(adapted(links.rewritten((ROOT / path).read_text(), path)), page))
    for path in sorted(links.code):
        _write(folder / f"code/{path}.md", code_page(path))
    for page, text in reference.pages().items():
        _write(folder / page, text)
    for picture in (ROOT / "docs").rglob("*"):
        if picture.suffix in _PICTURES:
            _copy(picture, folder / picture.relative_to(ROOT / "docs"))
    for asset in _THEME.iterdir():
        _copy(asset, folder / "assets" / asset.name)
    _copy(ROOT / "src/penstock/console/static/mark.svg", folder / "assets/mark.svg")
    _copy(mermaid, folder / _MERMAID)
    return links


def _drawn(text: str, page: str) -> str:
    """Pages with diagrams bring the script that draws them; others need not load it."""
    if "```mermaid" not in text:
        return text
    return f'{text}\n<script src="{relative(page, _MERMAID)}"></script>\n'


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _copy(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, target)
