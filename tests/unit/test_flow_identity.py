"""Every name that is made of a flow's: what stands in clusters already stays as it is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import SettingsError
from penstock.identity import Identity, is_clock
from penstock.pipeline.tracker import Writer
from penstock.settings import Settings

PIPELINES = st.from_regex(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,20}", fullmatch=True)
FLOWS = st.from_regex(r"[a-zA-Z0-9_-]{1,20}", fullmatch=True)
NAMESPACES = st.just("") | st.from_regex(r"[a-z0-9][a-z0-9_-]{0,10}", fullmatch=True)
IDENTITIES = st.builds(Identity.of, NAMESPACES, PIPELINES, FLOWS)


def names(identity):
    """All names in a cluster or a file system that two flows must not share."""
    return [
        identity.label,
        identity.group,
        identity.ledger,
        identity.clock,
        identity.folder("flows"),
    ]


def test_the_names_without_a_namespace_are_those_of_earlier_releases():
    flow = Identity.of("", "shop.eu", "large")
    assert names(flow) == [
        "shop.eu.large",
        "penstock.shop.eu.large",
        "_penstock_ledger.shop.eu.large",
        "_penstock_clock.shop.eu.large",
        "flows/shop.eu/large",
    ]
    assert flow.judged == "_penstock_judged.shop.eu"
    assert flow.transactional_id(3) == "penstock.shop.eu.large.3"
    letters = Identity.of_dead_letters("", "shop.eu")
    assert letters.label == "shop.eu.dead-letters"
    assert letters.transactional_id() == "penstock.shop.eu.dead-letters"
    assert letters.judged == flow.judged


def test_a_namespace_is_in_every_name():
    flow = Identity.of("team", "shop", "large")
    letters = Identity.of_dead_letters("team", "shop")
    everything = [*names(flow), flow.judged, flow.transactional_id(0), letters.transactional_id()]
    assert all("team" in name for name in everything)
    assert (flow.namespace, flow.pipeline, flow.flow) == ("team", "shop", "large")


@given(IDENTITIES, IDENTITIES)
def test_two_flows_share_no_name(one, other):
    if one != other:
        assert not {*names(one)} & {*names(other)}
        if (one.namespace, one.pipeline) != (other.namespace, other.pipeline):
            assert one.judged != other.judged


@given(IDENTITIES)
def test_a_label_is_all_that_is_needed(identity):
    again = Identity.of(identity.namespace, identity.pipeline, identity.flow)
    assert Identity(identity.label) == again
    assert is_clock(identity.clock)
    assert not is_clock(identity.ledger)
    assert Writer.parse(f"2 {identity.label} sales/1") == Writer(2, identity.label, "sales", 1)


def test_flows_of_one_pipeline_stand_beside_each_other():
    shop = Identity("shop.large")
    assert shop.is_beside(Identity("shop.small"))
    assert not shop.is_beside(Identity("team:shop.small"))
    assert not shop.is_beside(Identity("shop.eu.small"))


def test_only_a_version_that_is_not_the_first_is_named():
    assert Identity("shop.large").maker("1") == "shop.large"
    assert Identity("shop.large").maker("2") == "shop.large@2"


@pytest.mark.parametrize("strange", ["Team", "a.b", "a:b", "-a", "a/b", "a" * 41])
def test_a_strange_namespace_is_refused(strange):
    with pytest.raises(SettingsError, match="namespace"):
        Settings(namespace=strange)


def test_a_namespace_comes_from_the_file_or_a_variable_and_is_handed_on(tmp_path):
    (tmp_path / "penstock.toml").write_text('namespace = "team"\n[kafka]\nbootstrap.servers = "b:1"\n')
    loaded = Settings.load(tmp_path, {})
    assert loaded.namespace == "team"
    assert Settings.load(tmp_path, {"PENSTOCK_NAMESPACE": "other"}).namespace == "other"
    assert loaded.environment()["PENSTOCK_NAMESPACE"] == "team"
