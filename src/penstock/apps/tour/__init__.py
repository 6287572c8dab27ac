"""A tour of the log: typed events through a group of three, one of which is killed on the way."""
