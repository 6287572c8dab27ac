"""Pages are written for any Git host (CommonMark); the site's Markdown wants a few things otherwise."""

import re
from collections.abc import Iterator

from scripts.docs.links import fenced

_ITEM = re.compile(r"(?P<indent> *)(?:[-*]|\d+\.) ")
_CODE = re.compile(r"`[^`]*`")


def adapted(text: str) -> str:
    """The same text as the site's Markdown reads it."""
    return "".join(_lines(text))


def _lines(text: str) -> Iterator[str]:
    """A list and a table begin behind an empty line, a nested item four columns in, `a \\| b` is `a | b`.

    >>> adapted("Take one:\\n- a\\n  - b\\n")
    'Take one:\\n\\n- a\\n    - b\\n'
    """
    before = ""
    for line, within in fenced(text):
        if within:
            yield line
        elif _begins(line, before):
            yield f"\n{_indented(line)}"
        elif line.startswith("|"):
            yield _CODE.sub(lambda code: code[0].replace("\\|", "|"), line)
        else:
            yield _indented(line)
        before = line


def _begins(line: str, before: str) -> bool:
    if not before.strip() or before.startswith("#"):
        return False
    if line.startswith("|"):
        return not before.startswith("|")
    return bool(_ITEM.match(line)) and not _ITEM.match(before) and not before.startswith(" ")


def _indented(line: str) -> str:
    deep = len(line) - len(line.lstrip(" "))
    return "  " * deep + line.lstrip(" ") if deep in (2, 3) else line


def fenced_examples(text: str) -> str:
    """A docstring with its examples fenced: each lasts until an empty line.

    >>> fenced_examples("Add one.\\n\\n>>> 1 + 1\\n2").splitlines()[-4:]
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    lines, within = list[str](), False
    for line in text.splitlines():
        if not within and line.lstrip().startswith(">>> "):
            lines += ["", "```pycon"]
            within = True
        if within and not line.strip():
            lines.append("```")
            within = False
        lines.append(line)
    return "\n".join([*lines, "```"] if within else lines)
