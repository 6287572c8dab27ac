"""Settings for drivers, sessions and brokers that live a minute: compiling for longer would take longer."""

JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m"
CANARY = "canary-3c81e0"  # a secret of the session that all tests share
SPARK = {"spark.driver.extraJavaOptions": JAVA}
