"""Settings from files, variables and local services, and secrets that stay secret."""

import json

import pytest

from penstock.errors import SettingsError
from penstock.settings import Secret, Settings

CANARY = "canary-7f3a9"


def load(folder, text="", **environ):
    if text:
        (folder / "penstock.toml").write_text(text)
    return Settings.load(folder, environ)


def test_the_file_wins_over_local_services_and_variables_over_the_file(tmp_path):
    local = {
        "kafka": {"bootstrap.servers": "local:1", "client.id": "local"},
        "postgres": "postgresql://p@l/d",
    }
    (tmp_path / ".penstock").mkdir()
    (tmp_path / ".penstock" / "endpoints.json").write_text(json.dumps(local))
    assert load(tmp_path).kafka["bootstrap.servers"] == "local:1"
    text = '[kafka]\nbootstrap.servers = "file:1"\nlinger.ms = 7\nenable.idempotence = true'
    found = load(tmp_path, text, PENSTOCK_KAFKA_CLIENT_ID="variable")
    assert found.client() == {
        "bootstrap.servers": "file:1",
        "client.id": "variable",
        "linger.ms": "7",
        "enable.idempotence": "true",
    }
    assert isinstance(found.postgres, Secret)


def test_sparks_own_settings(tmp_path):
    text = '[spark]\nmaster = "local[3]"\nsql.shuffle.partitions = 5'
    assert load(tmp_path, text).spark == {"spark.master": "local[3]", "spark.sql.shuffle.partitions": "5"}


def test_modules_and_data(tmp_path):
    found = load(tmp_path, 'modules = ["shop.topics"]\ndata = "elsewhere"')
    assert (found.modules, found.data) == (("shop.topics",), tmp_path / "elsewhere")
    assert load(tmp_path, PENSTOCK_MODULES="a,b", PENSTOCK_DATA="d").modules == ("a", "b")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kafka = [", "not valid TOML"),
        ("colour = 1", "unknown setting 'colour'"),
        (f'[kafka]\nsasl.password = "{CANARY}"', "in the clear"),
        ('[kafka]\nsasl.password = { env = "NOT_SET" }', "NOT_SET, which is not set"),
        ('[kafka]\nsasl.password = { file = "/no/such/file" }', "can't be read"),
        ("[kafka]\nclient.id = [1]", "is a list"),
    ],
)
def test_what_is_wrong_is_reported_without_the_secret(tmp_path, text, says):
    with pytest.raises(SettingsError, match=says) as caught:
        load(tmp_path, text)
    assert CANARY not in str(caught.value)


def test_secrets_are_referred_to_and_never_shown(tmp_path):
    (tmp_path / "password").write_text(CANARY + "\n")
    text = f'[kafka]\nbootstrap.servers = "b:1"\nsasl.password = {{ file = "{tmp_path}/password" }}'
    by_file = load(tmp_path, text)
    by_variable = load(
        tmp_path, '[kafka]\nsasl.password = { env = "P" }\nbootstrap.servers = "b:1"', P=CANARY
    )
    direct = Settings(
        kafka={"ssl.key.password": CANARY, "bootstrap.servers": "b:1"},
        postgres=f"postgresql://u:{CANARY}@h/d",
    )
    for found in (by_file, by_variable, direct):
        assert CANARY in found.client().values()
        assert CANARY not in repr(found)
        assert CANARY not in str(found)
        assert CANARY not in f"{found.kafka} {found.postgres}"


def test_no_broker_is_reported_with_what_to_do(tmp_path):
    with pytest.raises(SettingsError, match="penstock up"):
        load(tmp_path).client()


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://u:{CANARY}@h/d",
        f"postgresql:///d?user=u&password={CANARY}",
        f"host=h user=u password={CANARY} dbname=d",
        f"host=h user=u password='{CANARY}'",
    ],
)
def test_a_dsn_is_a_secret_in_every_form(dsn):
    found = Settings(postgres=dsn)
    assert CANARY not in f"{found!r} {found} {found.postgres}"
    assert found.postgres.value == dsn


def test_sparks_secrets_are_kept_from_sight_and_handed_on(tmp_path):
    text = '[spark]\nhadoop.fs.s3a.secret.key = { env = "KEY" }\nshop.dsn = { env = "DSN" }\nmaster = "local"'
    found = load(tmp_path, text + '\n[kafka]\nbootstrap.servers = "b:1"', KEY=CANARY, DSN=f"{CANARY}-2")
    direct = Settings(spark={"spark.ssl.keyPassword": CANARY}, kafka={"bootstrap.servers": "b:1"})
    for each in (found, direct):
        assert CANARY not in f"{each!r} {each.spark}"
    assert found.spark["spark.master"] == "local"
    assert found.spark["spark.hadoop.fs.s3a.secret.key"] == Secret(CANARY)
    (tmp_path / "penstock.toml").unlink()
    again = Settings.load(tmp_path, found.environment())
    assert again.spark["spark.shop.dsn"] == Secret(f"{CANARY}-2")
    assert CANARY not in repr(again)


def test_a_secret_of_sparks_in_the_clear_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="in the clear") as caught:
        load(tmp_path, f'[spark]\nssl.keyPassword = "{CANARY}"')
    assert CANARY not in str(caught.value)
    with pytest.raises(SettingsError, match="not a JSON object") as caught:
        load(tmp_path, "modules = []", PENSTOCK_SPARK_SECRETS=f'["{CANARY}"]')
    assert CANARY not in str(caught.value)


def test_names_that_only_sound_secret_are_plain():
    plain = {"spark.kubernetes.oauthTokenFile": "/f", "spark.kafka.clusters.a.sasl.token.mechanism": "S"}
    assert Settings(spark=plain).spark == plain


CONNECTIONS = """
postgres = "host=localhost dbname=main"
[connections.shop]
dsn = { env = "SHOP_DSN" }
[connections.cache]
url = "redis://localhost:6379"
timeout.ms = 500
"""


def test_connections_have_names(tmp_path):
    found = load(tmp_path, CONNECTIONS, SHOP_DSN=f"postgresql://u:{CANARY}@h/d")
    assert CANARY not in f"{found!r} {found.connections} {found.connection('shop')}"
    assert found.dsn("shop").value == f"postgresql://u:{CANARY}@h/d"
    assert found.dsn().value == "host=localhost dbname=main"
    assert found.connection("cache") == {"url": Secret("redis://localhost:6379"), "timeout.ms": Secret("500")}
    with pytest.raises(SettingsError, match="no connection 'shoop'") as caught:
        found.dsn("shoop")
    assert "cache, shop" in caught.value.hint
    with pytest.raises(SettingsError, match="'cache' has no dsn"):
        found.dsn("cache")


def test_connections_are_handed_on_to_other_processes(tmp_path):
    found = load(tmp_path, CONNECTIONS + '[kafka]\nbootstrap.servers = "b:1"', SHOP_DSN=CANARY)
    (tmp_path / "penstock.toml").unlink()
    assert Settings.load(tmp_path, found.environment()).connections == found.connections


@pytest.mark.parametrize(
    "text",
    [
        f'postgres = "postgresql://u:{CANARY}@h/d"',
        f'postgres = "host=h password={CANARY}"',
        f'[connections.shop]\ndsn = "postgresql://u:{CANARY}@h/d"',
        f'[connections.cache]\nurl = "redis://:{CANARY}@h:6379"',
        f'[connections.cache]\npassword = "{CANARY}"',
        f'[connections.search]\napi_key = "{CANARY}"',
        f'[connections.search]\nurl = "https://h/?token={CANARY}"',
    ],
)
def test_a_password_in_the_clear_is_refused(tmp_path, text):
    with pytest.raises(SettingsError, match="in the clear") as caught:
        load(tmp_path, text)
    assert CANARY not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("text", ['connections = "shop"', '[connections]\nshop = "dsn"'])
def test_connections_are_tables(tmp_path, text):
    with pytest.raises(SettingsError, match="are tables"):
        load(tmp_path, text)


def test_the_variable_of_connections_is_json(tmp_path):
    with pytest.raises(SettingsError, match="not a JSON object") as caught:
        load(tmp_path, "modules = []", PENSTOCK_CONNECTIONS=f'["{CANARY}"]')
    assert CANARY not in str(caught.value)
