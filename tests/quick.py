"""Settings for drivers and sessions that live a minute: compiling for the long run would take longer."""

SPARK = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
