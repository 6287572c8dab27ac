"""The session's Java starts with the archive of Spark's classes that the set-up has made, and no secrets."""

import re
from pathlib import Path

import pytest
from tests import quick

from penstock.errors import SettingsError
from penstock.process import session
from penstock.process.spark.class_archive import archive, java_options
from penstock.settings import Secret, Settings


def test_the_archive_of_classes_is_there_and_used(spark):
    assert archive().exists(), "make setup makes it"
    management = spark._jvm.java.lang.management.ManagementFactory
    asked = list(management.getRuntimeMXBean().getInputArguments())
    assert java_options().split()[0] in asked


def test_without_an_archive_java_is_asked_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert java_options() == ""


def test_no_secret_is_among_the_arguments_of_a_process(spark):
    java = str(spark._jvm.java.lang.ProcessHandle.current().pid())
    arguments = {path.parent.name: path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")}
    assert b"spark.app.name=tests" in arguments[java], "the session's other settings are there to be seen"
    assert [process for process, line in arguments.items() if quick.CANARY.encode() in line] == []


def test_secrets_reach_spark_which_is_asked_to_hide_them(spark):
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.tests.password") == conf.get("spark.tests.dsn") == quick.CANARY
    hidden = re.compile(conf.get("spark.redaction.regex"))
    assert [bool(hidden.search(name)) for name in ("spark.tests.password", "spark.tests.dsn")] == [True, True]


def test_what_java_is_started_with_can_not_be_a_secret():
    settings = Settings(spark={"spark.driver.extraJavaOptions": Secret("-Dpassword=hunter2")})
    with pytest.raises(SettingsError, match="everybody on the machine") as caught:
        session(settings)
    assert "hunter2" not in str(caught.value)
