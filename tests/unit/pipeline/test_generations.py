"""Which generation is at work: the command that has begun to replace it is the one that completes it."""

from dataclasses import replace

import msgspec
import pytest

from penstock.errors import FencedError, FlowError
from penstock.identity import Identity
from penstock.pipeline.generation import Generation, Generations

SHADOW = replace(Generation().begun("", "v2", shadow=True), building=7)
SWAPPED = SHADOW.cutting({"a": {0: 9}}, 3).swapped(kept=True)
BEGUN = {
    "swap": SHADOW.cutting({"a": {0: 9}}, 3),
    "rollback": SWAPPED.turned_back().cutting({"a": {0: 12}}, 5),
    "rebuild": replace(Generation().begun("", "v2"), swapping=True),
}


class Kept(Generations):
    """Generations in memory, as the file has them."""

    def __init__(self, known):
        self._identity, self._home = Identity("shop.large"), self
        self.text = msgspec.json.encode(known).decode()

    def read(self, name=None):
        return self.text if name else super().read()

    def write(self, what, more):
        if isinstance(what, str):
            self.text = more
        else:
            super().write(what, more)


@pytest.mark.parametrize("begun", BEGUN)
def test_only_the_command_that_has_begun_completes_it(begun):
    kept = Kept(BEGUN[begun])
    assert kept.read_for(begun).command == begun
    for other in {*BEGUN, ""} - {begun}:
        with pytest.raises(
            FlowError, match=f"a {begun}, and that .* run `penstock {begun} shop large` again"
        ):
            kept.read_for(other)
    with pytest.raises(FlowError, match=f"run `penstock {begun} shop large` again"):
        kept.at_work()


def test_whoever_asks_reads_what_is_not_being_replaced():
    assert Kept(SHADOW).read_for("rollback") == SHADOW
    assert Kept(SWAPPED).at_work() == Identity("shop.large", 7)


def test_a_shadow_that_is_being_put_in_place_does_not_run_any_more():
    shadow = Identity("shop.large", 7)
    Kept(SHADOW).refuse_discarded(shadow)
    discarding = replace(SHADOW, discarding=True)
    for known in (BEGUN["swap"], SWAPPED, SHADOW.without_rebuild(), discarding):
        with pytest.raises(FencedError, match="not being built any more"):
            Kept(known).refuse_discarded(shadow)


def test_a_shadow_that_is_given_up_keeps_the_flow_at_work_running():
    assert Kept(replace(SHADOW, discarding=True)).at_work() == Identity("shop.large", 0)
    assert not replace(SHADOW, discarding=True).without_rebuild().discarding


def test_a_flow_that_begins_anew_has_nothing_to_pass_over():
    anew = replace(SWAPPED, end={"a": {0: 3}}).begun_anew()
    assert (anew.current, anew.former, anew.end, anew.cut, anew.cut_watermark) == (7, 0, {}, {}, 0)


def test_no_number_comes_twice():
    late = replace(Generation().begun("", "v2", shadow=True), building=99_999_999_999)
    again = late.without_rebuild().begun("", "v3", shadow=True)
    assert again.building == 100_000_000_000
    swapped = again.cutting({}, 0).swapped(kept=True)
    assert swapped.last == 99_999_999_999
