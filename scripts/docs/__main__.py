"""`make docs`: the docs as a site in build/site, complete in itself; every link is checked."""

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

from scripts.docs.built import problems
from scripts.docs.pages import ROOT
from scripts.docs.staging import stage

PAGES, SITE = ROOT / "build" / "pages", ROOT / "build" / "site"
_QUIET = {"NO_MKDOCS_2_WARNING": "1"}  # an advertisement
EXTERNAL = ROOT / "build" / "external-links.txt"


def main() -> int:
    links = stage(PAGES, _mermaid())
    if links.broken:
        return _failed(links.broken)
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--clean"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ | _QUIET, check=False)
    if done.returncode:
        return done.returncode
    found = problems(SITE)
    if found:
        return _failed(found)
    EXTERNAL.write_text("".join(f"{each}\n" for each in sorted(links.external)))
    count = len(list(SITE.rglob("*.html")))
    print(
        f"{count} pages in {SITE.relative_to(ROOT)}, every link within them leads somewhere: open index.html;"
    )
    print(f"{len(links.external)} links lead elsewhere: {EXTERNAL.relative_to(ROOT)}")
    return 0


def _mermaid() -> Path:
    """The script that draws diagrams, from a package that brings it: nothing is loaded from elsewhere."""
    files = importlib.metadata.files("mmdc") or ()
    return next(Path(str(file.locate())) for file in files if file.name == "mermaid.js")


def _failed(found: list[str]) -> int:
    print(*found, sep="\n", file=sys.stderr)
    return 65


if __name__ == "__main__":
    sys.exit(main())
