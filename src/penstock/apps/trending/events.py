"""What the trending application reads and writes."""

from dataclasses import dataclass
from datetime import datetime

from penstock.events import Event
from penstock.log import Topic


@dataclass(frozen=True)
class Post(Event):
    """Somebody used a hashtag."""

    tag: str
    user: str
    at: datetime


@dataclass(frozen=True)
class Trend(Event, time="end"):
    """A place in the ranking of a window: `growth` is how often a tag was used by how often it usually is."""

    tag: str
    start: datetime
    end: datetime
    place: int
    uses: int
    usual: float
    growth: float


@dataclass(frozen=True)
class BatchRun(Event, time="end"):
    """What a batch found when it was done: the ranking, how many posts it read, and how long it took."""

    end: datetime
    tags: list[str]
    read: int
    seconds: float


posts = Topic("trending.posts", Post, key="user", partitions=2)
hopping_trends = Topic("trending.hopping", Trend)
tumbling_trends = Topic("trending.tumbling", Trend)
batch_runs = Topic("trending.batch", BatchRun)
TOPICS = (posts, hopping_trends, tumbling_trends, batch_runs)
