"""Settings for drivers, sessions and brokers that live a minute: compiling for longer would take longer."""

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SPARK = {"spark.driver.extraJavaOptions": JAVA}
