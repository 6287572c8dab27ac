"""JSON documents, as they are decoded."""

from typing import Any

Json = Any  # an object, a list, text, a number, a boolean or None: what it is, its writer knows
JsonObject = dict[str, Json]
