"""The column that names the side output of a result; where it is null, a result goes to the flow's target."""

SIDE_OUTPUT = "_side_output"
STORED = "outlet"  # as checkpoints and the ids of results have it
