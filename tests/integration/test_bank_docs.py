"""The page about the bank, read from top to bottom: every command runs, and prints what the page shows."""

import pytest
from tests.walked_page import walked


@pytest.mark.long  # Spark is started three times
@pytest.mark.timeout(400)
def test_every_command_of_the_page_runs_and_prints_what_it_shows(tmp_path):
    with walked("bank.md", tmp_path) as page:
        pass
    for command, output, shown in page.printed:
        assert shown in output, command
    assert "MoneyReturned" in page.output("history ada")
    assert "PayeeRejected" in page.output("store read bank transfer gift-1")
    assert "1200.00 was taken from your account bob" in page.output("tail bank-messages")
