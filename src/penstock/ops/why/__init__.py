"""Why a result is what it is: the events behind it, proved by computing it again."""

from penstock.ops.why.answer import Answer, BehindEvent, Made
from penstock.ops.why.asking import Question, why
from penstock.ops.why.export import exported

__all__ = ["Answer", "BehindEvent", "Made", "Question", "exported", "why"]
