"""Links between files of the repository become links between pages of the site."""

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from scripts.docs.pages import ROOT, page_of, relative

_LINK = re.compile(r"(?P<code>`+[^`]*`+)|\]\((?P<target>[^)\s]+)\)")
_EXTERNAL = re.compile(r"[a-z]+:")


@dataclass
class Links:
    """What the links of all pages lead to: source files to be shown, external addresses, and nothing."""

    code: set[str] = field(default_factory=set)
    external: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)

    def rewritten(self, text: str, path: str) -> str:
        """The text of a file, its links leading where its page's have to."""
        return "".join(
            line if within else _LINK.sub(lambda found: self._replaced(found, path), line)
            for line, within in fenced(text)
        )

    def _replaced(self, found: re.Match[str], path: str) -> str:
        target = found["target"]
        if found["code"] or target.startswith("#"):
            return found[0]
        if _EXTERNAL.match(target):
            self.external.add(target)
            return found[0]
        file, mark, anchor = target.partition("#")
        return f"]({self._way(path, file)}{mark}{anchor})"

    def _way(self, path: str, file: str) -> str:
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        other, page = page_of(there), page_of(path)
        if other is None or page is None or not (ROOT / there).is_file():
            self.broken.append(f"{path} links to {file}: there is no such page")
            return file
        if other.startswith("code/"):
            self.code.add(there)
        return relative(page, other)


def fenced(text: str) -> Iterator[tuple[str, bool]]:
    """The lines of a text, each with whether it is in a block of code.

    >>> [within for _, within in fenced("a\\n```python\\nb\\n```\\nc")]
    [False, True, True, True, False]
    """
    fence = ""
    for line in text.splitlines(keepends=True):
        start = line.lstrip()[:3]
        if fence:
            yield line, True
            fence = "" if line.strip() == fence else fence
        else:
            fence = start if start in ("```", "~~~") else ""
            yield line, bool(fence)
