"""The end of a run, as an experiment meets it."""


class RunOver(Exception):
    """Raised in an experiment that was stopped or whose time is over: it cleans up and returns."""
