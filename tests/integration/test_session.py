"""The session's Java starts with the archive of Spark's classes that the set-up has made."""

from penstock.process.classes import archive, java_options


def test_the_archive_of_classes_is_there_and_used(spark):
    assert archive().exists(), "make setup makes it"
    management = spark._jvm.java.lang.management.ManagementFactory
    asked = list(management.getRuntimeMXBean().getInputArguments())
    assert java_options().split()[0] in asked


def test_without_an_archive_java_is_asked_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert java_options() == ""
