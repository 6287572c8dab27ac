"""The doctor: checks that look at a system and its probes, and say what is wrong, why and what to do."""
