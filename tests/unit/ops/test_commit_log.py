"""The commits of groups that are kept: those of the window, and the last ones of whoever commits rarely."""

from penstock.ops.lag.commit_log import CommitLog
from penstock.ops.lag.judging import KEPT
from penstock.ops.lag.offset_commits import OffsetCommit, Place
from penstock.settings import Settings

NOW = 100_000.0
BUSY, RARE, GONE = (Place(group, "orders", 0) for group in ("busy", "rare", "gone"))


def test_the_last_commits_of_a_place_are_kept_whatever_their_age():
    log = CommitLog(Settings())
    for ago in range(1200, -1, -5):
        log._take(OffsetCommit(BUSY, 1200 - ago, NOW - ago))
    for ago in range(9000, 0, -900):
        log._take(OffsetCommit(RARE, 9000 - ago, NOW - ago))
    log._take(OffsetCommit(GONE, 5, NOW - 9000))
    log._take(OffsetCommit(GONE, None, 0.0))
    log._drop_before(NOW - 600)
    kept = {place: [NOW - each.at for each in commits] for place, commits in log._found.items()}
    assert kept == {BUSY: [*range(600, -1, -5)], RARE: [*range(900 * KEPT, 0, -900)]}
