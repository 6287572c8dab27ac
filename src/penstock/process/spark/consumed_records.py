"""How many records the Kafka consumers in Spark's Java process have got, by their own metrics."""

from contextlib import suppress

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from penstock.process.spark.java import Java

_CONSUMERS = "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=*"
_CONSUMED = "records-consumed-total"


class ConsumedRecords:
    """Asks Java's registry of metrics; on a cluster it knows only of the driver's own consumers."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Java = spark._jvm
        self._jvm = jvm
        self._gateway: Java = spark.sparkContext._gateway
        self._server: Java = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        methods = jvm.java.lang.Class.forName("javax.management.MBeanServer").getMethods()
        self._methods = {str(method.getName()): method for method in methods}

    def by_client(self) -> dict[str, int]:
        """Return the count of each consumer that is open, by the name of its metrics."""
        names = self._call("queryNames", self._jvm.javax.management.ObjectName(_CONSUMERS), None)
        found: dict[str, int] = {}
        for name in names:
            with suppress(Py4JJavaError):  # it was closed meanwhile
                found[str(name.toString())] = int(self._call("getAttribute", name, _CONSUMED))
        return found

    def _call(self, method: str, *arguments: object) -> Java:
        """Call a method of the interface: the class behind it is not open to reflection."""
        array = self._gateway.new_array(self._jvm.java.lang.Object, len(arguments))
        for place, each in enumerate(arguments):
            array[place] = each
        return self._methods[method].invoke(self._server, array)
