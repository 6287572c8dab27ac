"""Objects of Java's, in the JVM that Spark runs in."""

from py4j.java_gateway import JavaObject

Java = JavaObject  # it has whatever methods its class has, none of which Python knows
