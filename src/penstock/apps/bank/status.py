"""The stages that a run of the bank goes through."""

STAGES = {
    "services": "start Kafka and PostgreSQL",
    "open": "open accounts",
    "readers": "start publisher, process, flows",
    "work": "commands at the counters",
    "kill": "kill -9 of all three, and recover",
    "settle": "let transfers end and views follow",
    "check": "check against the log",
    "stop": "stop everything",
}
