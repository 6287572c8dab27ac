"""Frames as bytes, in which they cross between Spark and Python and are kept, and as what Spark takes."""

import io

import polars as pl
import pyarrow as pa


def pack(frame: pl.DataFrame) -> bytes:
    """Return a frame as bytes."""
    target = io.BytesIO()
    frame.write_ipc_stream(target)
    return target.getvalue()


def unpack(packed: bytes) -> pl.DataFrame:
    """Return the frame that was packed."""
    return pl.read_ipc_stream(packed)


def packed_rows(*frames: pl.DataFrame) -> list[bytes]:
    """Return frames as bytes, but those without rows."""
    return [pack(frame) for frame in frames if frame.height]


def arrow_batches(frame: pl.DataFrame, schema: pa.Schema) -> list[pa.RecordBatch]:
    """Return a frame as Spark takes it, in the types that were declared."""
    batches: list[pa.RecordBatch] = (
        frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(schema).to_batches()
    )
    return batches
