"""What is going on: one read model of the system, and what is made of it; only `doctor.fixing` acts."""
