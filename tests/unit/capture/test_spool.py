"""Large transactions on disk."""

from penstock.capture.spool import Spool


def test_what_was_rolled_back_is_left_out_but_descriptions_stay(tmp_path):
    spool = Spool(tmp_path)
    for part, data in [(7, b"I1"), (8, b"Rtable"), (8, b"I2"), (9, b"I3")]:
        spool.add(7, part, 100, data)
    spool.undo(7, 8)
    assert list(spool.read(7)) == [(100, b"I1"), (100, b"Rtable"), (100, b"I3")]


def test_a_transaction_that_was_rolled_back_leaves_nothing(tmp_path):
    spool = Spool(tmp_path)
    spool.add(7, 7, 1, b"I")
    spool.undo(7, 7)
    assert list(spool.read(7)) == []
    spool.close()
    assert list(tmp_path.iterdir()) == []


def test_transactions_side_by_side(tmp_path):
    spool = Spool(tmp_path)
    for lsn in range(1000):
        spool.add(lsn % 2, lsn % 2, lsn, b"I%d" % lsn)
    assert [lsn for lsn, _ in spool.read(1)] == list(range(1, 1000, 2))
    spool.forget(1)
    assert len(list(spool.read(0))) == 500
