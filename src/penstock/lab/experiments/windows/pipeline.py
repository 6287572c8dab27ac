"""The flow of the experiment: views of each user, counted in windows of one kind, with a late policy."""

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from penstock.lab.experiments.windows.views import counted_of, late_of, views_of
from penstock.pipeline import Pipeline
from penstock.process import windows
from penstock.process.windows import Late, Windowing, agg

REFIRED_WITHIN = "2 minutes"


@dataclass(frozen=True)
class Shape:
    """What the sliders say: seconds, and two words."""

    kind: str
    size: float
    hop: float
    watermark: float
    late: str

    def windowing(self, prefix: str) -> Windowing:
        """Return the operator."""
        size, hop = f"{self.size:g} seconds", f"{min(self.hop, self.size):g} seconds"
        made: dict[str, Callable[..., Windowing]] = {
            "tumbling": lambda **more: windows.tumbling(size, **more),
            "hopping": lambda **more: windows.hopping(size, every=hop, **more),
            "sliding": lambda **more: windows.sliding(size, **more),
            "session": lambda **more: windows.session(f"{self.hop:g} seconds", **more),
        }
        watermark = f"{self.watermark:g} seconds"
        return made[self.kind](
            time="at", by="user", watermark=watermark, late=self._policy(prefix), buckets=2
        )

    def _policy(self, prefix: str) -> Late:
        if self.late == "refire":
            return Late.refire(within=REFIRED_WITHIN)
        return Late.send(late_of(prefix)) if self.late == "side output" else Late.drop()


def windowed(prefix: str, shape: Shape) -> Pipeline:
    """Return the pipeline, whose flow is `counted`."""
    made = Pipeline("windows")
    operator = shape.windowing(prefix)
    sides = (late_of(prefix),) if shape.late == "side output" else ()

    @made.flow(
        reads={"views": views_of(prefix)},
        writes=counted_of(prefix),
        side_outputs=sides,
        checkpoint_interval="1 second",
        lanes=1,
    )
    def counted(views: DataFrame) -> DataFrame:
        found = views.transform(operator.agg(views=agg.count())).drop("views")
        return found if "n" in found.columns else found.withColumn("n", F.lit(None).cast("long"))

    return made
