"""Verified segments: read back from where they are stored, and compared with what they must hold."""

import hashlib

import pyarrow as pa

from penstock.archive.manifest import Manifest, read_manifest
from penstock.errors import ArchiveError
from penstock.log.archive.checksum import Checksum
from penstock.log.archive.history import History
from penstock.log.archive.parquet import Footer, SegmentFile
from penstock.log.archive.segment import Segment


def faults(history: History, segment: Segment) -> list[str]:
    """Read a segment's file once more, all of it; return what is wrong with it, nothing if it is whole."""
    content = history.storage.read(segment.path)
    if content is None:
        return ["the file is gone"]
    manifest = read_manifest(history, segment)
    found = ["its manifest is missing or can't be decoded"] if manifest is None else []
    if manifest is not None and hashlib.sha256(content).hexdigest() != manifest.sha256:
        found.append(f"its bytes are not those that were written (sha256 {manifest.sha256[:12]}…)")
    try:
        return found + _faults_of_rows(
            history, segment, SegmentFile(pa.py_buffer(content), segment.path), manifest
        )
    except (ArchiveError, pa.ArrowException, OSError, ValueError, UnicodeDecodeError) as error:
        return [*found, f"it can't be read: {error}"]


def _faults_of_rows(
    history: History, segment: Segment, file: SegmentFile, manifest: Manifest | None
) -> list[str]:
    footer, rows = file.footer, list(file.rows())
    found = _faults_of_footer(history, segment, footer, manifest)
    computed = Checksum.of(segment.partition, rows)
    if computed != footer.checksum:
        found.append(f"its records have the checksum {computed}, and should have {footer.checksum}")
    if any(not segment.holds(row.offset) for row in rows):
        found.append("it holds records of other offsets than its name says")
    return found


def _faults_of_footer(
    history: History, segment: Segment, footer: Footer, manifest: Manifest | None
) -> list[str]:
    found = []
    archive = history.archive
    if (footer.segment, footer.topic, footer.topic_id) != (segment, archive.topic, archive.topic_id):
        found.append(f"it says that it is {footer.topic}{footer.segment}, id {footer.topic_id}")
    if manifest is not None and manifest.checksum != str(footer.checksum):
        found.append(f"its manifest has another checksum: {manifest.checksum}")
    return found
