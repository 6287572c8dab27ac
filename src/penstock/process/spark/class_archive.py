"""An archive of the classes that Spark loads: with it, a flow's process is up in two thirds of the time.

It fits one Java and one folder of Spark's jars; `make_archive.py` makes it. Where it is missing or does not
fit, Java loads its classes as ever, and says nothing.
"""

import hashlib
import os
import shutil
import sys
from pathlib import Path

import pyspark

_UNSAID = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def archive() -> Path:
    """Return where the archive for this environment's Spark and Java is: it goes with the environment."""
    home = os.environ.get("JAVA_HOME")
    java = (Path(home, "bin", "java") if home else Path(shutil.which("java") or "java")).resolve()
    changed = java.stat().st_mtime_ns if java.exists() else 0
    fits = hashlib.sha256(f"{java} {changed} {pyspark.__version__}".encode()).hexdigest()[:12]
    return Path(sys.prefix) / "share" / "penstock" / f"spark-{fits}.jsa"


def java_options() -> str:
    """Return the options with which a driver's Java uses the archive; none where there is none."""
    found = archive()
    return f"-XX:SharedArchiveFile={found} {_UNSAID}" if found.exists() else ""
