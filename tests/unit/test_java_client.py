"""Settings of librdkafka reach Spark's Java client in the form it takes, or not at all."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from penstock.errors import SettingsError
from penstock.process.spark.java_client import java_settings
from penstock.settings import Settings

SERVER = {"bootstrap.servers": "broker:9092"}


def java(**kafka):
    given = SERVER | {name.replace("_", "."): value for name, value in kafka.items()}
    made = java_settings(Settings(kafka=given))
    assert made.pop("bootstrap.servers") == "broker:9092"
    return made


def test_what_both_clients_know_is_passed_on():
    assert java(client_id="me", linger_ms="5", fetch_wait_max_ms="9") == {
        "client.id": "me",
        "linger.ms": "5",
        "fetch.max.wait.ms": "9",
    }


@pytest.mark.parametrize(
    "name", ["socket.timeout.ms", "message.timeout.ms", "debug", "group.id", "auto.offset.reset", "log_level"]
)
def test_what_is_librdkafkas_own_or_sparks_to_decide_is_left_out(name):
    assert java_settings(Settings(kafka={**SERVER, name: "1"})) == SERVER


@pytest.mark.parametrize(
    ("mechanism", "module"),
    [
        ("PLAIN", "plain.PlainLoginModule"),
        ("SCRAM-SHA-256", "scram.ScramLoginModule"),
        ("SCRAM-SHA-512", "scram.ScramLoginModule"),
    ],
)
@pytest.mark.parametrize("name", ["sasl_mechanism", "sasl_mechanisms"])
def test_a_login_becomes_a_line_of_jaas(mechanism, module, name):
    made = java(
        security_protocol="sasl_ssl", sasl_username="ada", sasl_password='a"b\\c;d\n', **{name: mechanism}
    )
    assert made == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"org.apache.kafka.common.security.{module} required "
        r'username="ada" password="a\"b\\c;d\n";',
    }


def test_a_login_that_can_not_be_set_up_is_refused():
    with pytest.raises(SettingsError, match="OAUTHBEARER"):
        java(security_protocol="SASL_SSL", sasl_mechanism="OAUTHBEARER")


def test_authorities_become_a_truststore():
    assert java(ssl_ca_location="/ca.pem") == {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
    }
    assert java(ssl_ca_pem="text")["ssl.truststore.certificates"] == "text"


def test_a_certificate_and_its_key_become_a_keystore(tmp_path):
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    certificate.write_text("-----BEGIN CERTIFICATE-----")
    key.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMA==\n-----END ENCRYPTED PRIVATE KEY-----\n")
    given = {"ssl_certificate_location": str(certificate), "ssl_key_location": str(key)}
    assert java(**given, ssl_key_password="x") == {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----",
        "ssl.keystore.key": key.read_text(),
        "ssl.key.password": "x",
    }
    key.write_text("-----BEGIN RSA PRIVATE KEY-----")
    with pytest.raises(SettingsError, match="openssl pkcs8"):
        java(**given)
    key.unlink()
    with pytest.raises(SettingsError, match=r"ssl\.key\.location can't be read"):
        java(**given)


def test_a_store_of_pkcs12_and_an_unchecked_host_name_are_named_as_java_names_them():
    made = java(ssl_keystore_location="/c.p12", ssl_endpoint_identification_algorithm="none")
    assert made["ssl.keystore.type"] == "PKCS12"
    assert made["ssl.endpoint.identification.algorithm"] == ""


def test_a_password_for_a_key_in_the_clear_is_left_out_because_java_would_use_it():
    made = java(ssl_certificate_pem="c", ssl_key_pem="-----BEGIN PRIVATE KEY-----", ssl_key_password="x")
    assert "ssl.key.password" not in made


def test_a_key_whose_encryption_java_can_not_read_is_refused_with_the_way_out():
    key = ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"x"),
    )
    with pytest.raises(SettingsError, match="openssl pkcs12 -export"):
        java(ssl_certificate_pem="c", ssl_key_pem=key.decode(), ssl_key_password="x")


def test_a_folder_of_authorities_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="name a file"):
        java(ssl_ca_location=str(tmp_path))
