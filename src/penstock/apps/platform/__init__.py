"""Everything at once: fraud and the shop on one Spark, captured, killed with -9 on the way, and checked."""
