"""A consumer killed with -9 in mid-stream: the group's totals equal what was sent."""

from penstock.apps.tour.tour import take_tour


def test_the_group_reads_everything_although_a_member_is_killed(settings):
    report = take_tour(settings, 20_000, lambda *_: None)
    assert report.killed
    assert report.complete
    assert (report.sent, report.distinct, report.lag) == (20_000, 20_000, 0)
    assert sum(report.kept.values()) == 20_000
