"""`penstock doctor --fix` carries out what is still offered when it comes to it."""

import pytest

from penstock.cli import doctor
from penstock.ops.doctor import checks, fixing, probing
from penstock.ops.doctor.finding import Finding, Fix
from penstock.settings import Settings

FIX = Fix("abort-transaction", "penstock.shop.bill.0", "abort it")
STUCK = Finding("transactions.stuck", "warning", FIX.subject, "it hangs", fix=FIX)


@pytest.mark.parametrize(("findings", "done"), [([STUCK], [FIX]), ([], [])])
def test_a_fix_is_looked_at_again_before_it_is_carried_out(monkeypatch, capsys, findings, done):
    carried = []
    monkeypatch.setattr(probing, "examine", lambda *_, **__: ("system", "probes"))
    monkeypatch.setattr(checks, "diagnose", lambda *asked: findings if asked[2] == {STUCK.id} else [])
    monkeypatch.setattr(fixing, "carry_out", lambda fix, *_: carried.append(fix) or "done")
    doctor._fix([STUCK], Settings(), None, dry_run=False, yes=True, quiet=False)
    assert carried == done
    assert ("not offered any more" in capsys.readouterr().out) is not bool(done)
