"""A user's function over columns: it gets frames of the kind that it asks for, and its answer is checked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl

from penstock.errors import FlowError

Frames = Literal["polars", "pandas", "pyarrow"]
OverColumns = Callable[[Any, Any], tuple[Any, Any]]


@dataclass(frozen=True)
class KeyedFunction:
    """`state` and `returns` are empty frames, with the columns and types of what it gives back."""

    function: OverColumns
    by: tuple[str, ...]
    state: pl.DataFrame
    returns: pl.DataFrame
    frames: Frames

    def __call__(self, rows: pl.DataFrame, state: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the new state of the keys, and the results."""
        answer = self.function(self._given(rows), self._given(state))
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise FlowError(
                f"a function over keyed state returned {type(answer).__name__}",
                hint="return two frames: the new state, and the results",
            )
        new = _checked(answer[0], self.state, "state")
        self._refuse_strange_keys(new, state)
        return new, _checked(answer[1], self.returns, "returns")

    def _given(self, frame: pl.DataFrame) -> Any:
        if self.frames == "polars":
            return frame
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        return table if self.frames == "pyarrow" else table.to_pandas()

    def _refuse_strange_keys(self, new: pl.DataFrame, state: pl.DataFrame) -> None:
        twice = new.filter(new.select(self.by).is_duplicated())
        unasked = new.join(state, on=self.by, how="anti", nulls_equal=True)
        for rows, what in ((twice, "has state twice"), (unasked, "was not asked for")):
            if rows.height:
                raise FlowError(
                    f"a function over keyed state: {rows.select(self.by).row(0, named=True)} {what}",
                    hint="return at most one row for each row of the state that was given",
                )


def _checked(answer: Any, like: pl.DataFrame, declared: str) -> pl.DataFrame:
    frame = answer if isinstance(answer, pl.DataFrame) else pl.DataFrame(answer)
    missing = [name for name in like.columns if name not in frame.columns]
    if missing:
        raise FlowError(
            f"a function over keyed state gave no column {missing[0]!r}, but {', '.join(frame.columns)}",
            hint=f"its `{declared}=` declares it",
        )
    return frame.select(like.columns).cast(like.schema)
