"""Source files that pages link to, as pages that show them."""

from pathlib import PurePosixPath

from scripts.docs.pages import ROOT

_LANGUAGES = {".py": "python", ".sh": "bash", ".js": "javascript"}


def code_page(path: str) -> str:
    """A page that shows a file; it stays out of the search, which is for the docs."""
    text = (ROOT / path).read_text()
    suffix = PurePosixPath(path).suffix
    language = _LANGUAGES.get(suffix, suffix[1:])
    head = f"---\ntitle: {path}\nsearch:\n  exclude: true\nhide: [toc]\n---\n"
    return f'{head}# `{path}`\n\n~~~~{{ .{language} linenums="1" }}\n{text}\n~~~~\n'
