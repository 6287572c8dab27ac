"""How much work a proof may take, so that small schemas can't ask for endless work."""


class Budget:
    """A number of steps that is spent once: what is not proven by then counts as not provable.

    >>> budget = Budget(1)
    >>> budget.spend(), budget.spend()
    (True, False)
    """

    def __init__(self, steps: int) -> None:
        self._left = steps

    @property
    def empty(self) -> bool:
        """Whether nothing is left."""
        return self._left <= 0

    def spend(self, steps: int = 1) -> bool:
        """Take some steps; False if there were not so many left."""
        self._left -= steps
        return self._left >= 0
