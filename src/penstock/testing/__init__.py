"""What users test their own pipelines with."""
