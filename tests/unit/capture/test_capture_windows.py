"""Chunks that are read while the stream goes on."""

from penstock.capture.windows import CommittedTransactions, Windows


def test_a_window_knows_the_keys_that_changed_while_it_was_open():
    windows = Windows()
    windows.changed("public.a", b"0")
    windows.open("1", "public.a")
    windows.changed("public.a", b"1")
    windows.changed("public.b", b"2")
    window = windows.close("1")
    assert window is not None
    assert window.keys == {b"1"}
    assert not window.is_void
    assert windows.close("1") is None


def test_a_table_that_is_emptied_or_altered_makes_its_windows_void():
    windows = Windows()
    windows.open("1", "public.a")
    windows.open("2", "public.b")
    windows.voided("public.a")
    assert windows.close("1").is_void
    assert not windows.close("2").is_void


def test_a_snapshot_has_to_see_all_that_the_stream_has_shown():
    seen = CommittedTransactions()
    for xid in (10, 11, 12):
        seen.add(xid)
    assert seen.all_in("13:13:")
    assert seen.all_in("9:14:9,13")
    assert not seen.all_in("11:13:11")
    assert not seen.all_in("10:12:")


def test_transaction_numbers_start_again():
    seen = CommittedTransactions()
    seen.add(2**32 - 1)
    assert seen.all_in(f"{2**32 + 5}:{2**32 + 5}:")
    assert not seen.all_in(f"{2**32 - 1}:{2**32 + 5}:{2**32 - 1}")
