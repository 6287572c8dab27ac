"""Which errors are a matter of access, and which of them pass by themselves."""

import pytest
from confluent_kafka import KafkaError

from penstock.errors import AuthenticationError, AuthorizationError, LogError, SettingsError
from penstock.log.access import is_refused
from penstock.log.client import ErrorListener, configuration, explain
from penstock.process.spark.java_errors import client_error
from penstock.settings import Settings

SETTINGS = Settings(kafka={"bootstrap.servers": "broker:9093", "sasl.username": "ada"})
WRONG_PASSWORD = KafkaError(KafkaError._AUTHENTICATION, "SASL authentication error: invalid credentials")
JAVA = "org.apache.kafka.common.errors."


def a_listener():
    listener = ErrorListener()
    configuration(SETTINGS, {}, {}, listener)
    return listener


@pytest.mark.parametrize(
    ("code", "said", "refused"),
    [
        (KafkaError._AUTHENTICATION, "SASL authentication error: invalid credentials", True),
        (KafkaError._AUTHENTICATION, "handshake failed: Local: Broker transport failure", False),
        (KafkaError._SSL, "SSL handshake failed: certificate verify failed", True),
        (KafkaError._SSL, "SSL handshake failed: Disconnected: connection closed by peer", False),
        (KafkaError._TRANSPORT, "Receive failed: ssl/tls alert bad certificate", True),
        (KafkaError._TRANSPORT, "Connect to broker failed: Connection refused", False),
        (KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down", False),
    ],
)
def test_a_connection_that_was_cut_is_not_taken_for_a_refusal(code, said, refused):
    error = KafkaError(code, said)
    listener = a_listener()
    listener(error)
    assert is_refused(error) is refused
    assert (listener.refusal is not None) is refused


def test_the_cause_is_reported_instead_of_its_consequence():
    listener = a_listener()
    listener(WRONG_PASSWORD)
    listener(KafkaError(KafkaError._ALL_BROKERS_DOWN, "1/1 brokers are down"))
    error = explain("list topics", KafkaError(KafkaError._TRANSPORT), listener)
    assert isinstance(error, AuthenticationError)
    assert "can't list topics: the broker does not let user 'ada' in" in str(error)
    assert listener.last == WRONG_PASSWORD.str()


def test_an_error_that_is_no_consequence_is_reported_itself():
    listener = a_listener()
    listener(WRONG_PASSWORD)
    assert isinstance(explain("read", KafkaError(KafkaError._BAD_MSG), listener), LogError)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, "topic"),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, "group"),
        (KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "transactional id"),
        (KafkaError.CLUSTER_AUTHORIZATION_FAILED, "cluster"),
    ],
)
def test_a_missing_permission_names_the_principal_and_what_it_is_for(code, kind):
    error = explain("read topic 'orders'", KafkaError(code), a_listener())
    assert isinstance(error, AuthorizationError)
    assert f"can't read topic 'orders': User:ada lacks a permission on the {kind}" in error.message
    assert "User:ada" in error.hint


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        (f"{JAVA}TopicAuthorizationException: Not authorized: [orders]", AuthorizationError, "[orders]"),
        (f"x\nCaused by: {JAVA}GroupAuthorizationException: no", AuthorizationError, "on the group: no"),
        (f"{JAVA}SaslAuthenticationException: invalid credentials", AuthenticationError, "user 'ada'"),
        (f"{JAVA}SslAuthenticationException: SSL handshake failed", AuthenticationError, "ssl.ca.location"),
        (f"{JAVA}SslAuthenticationException: Remote host terminated the handshake", None, ""),
        ("Failed to create new KafkaAdminClient\nInvalid PEM", SettingsError, "set up: Invalid PEM"),
        ("Failed to construct kafka producer\nNo resolvable bootstrap urls given", None, ""),
        ("java.net.ConnectException: refused", None, ""),
    ],
)
def test_what_java_says_of_access_is_an_error_of_ours_unless_it_passes(text, kind, says):
    found = client_error("run flow 'bill'", text, SETTINGS)
    assert found is None if kind is None else type(found) is kind
    assert says in str(found)
