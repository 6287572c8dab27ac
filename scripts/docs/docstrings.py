"""Docstrings as Markdown: a griffe extension that puts runnable examples into blocks of code."""

from typing import Any

import griffe
from scripts.docs.dialect import fenced_examples


class Examples(griffe.Extension):
    """`>>> …` becomes a block of Python, as it stands."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = fenced_examples(obj.docstring.value)
