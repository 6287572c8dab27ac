"""Questions are asked at once; one that fails or hangs leaves the others answered."""

import threading
import time

from penstock.errors import LogError
from penstock.ops.questions import ask


def test_a_question_that_hangs_holds_nobody_up():
    never, missing = threading.Event(), []
    began = time.monotonic()
    assert ask({"slow": lambda: never.wait(30), "fast": lambda: 7}, 0.3, missing) == {"fast": 7}
    assert time.monotonic() - began < 5
    assert missing == ["slow: no answer in 0 s"]
    never.set()


def test_what_was_refused_is_said_in_the_words_of_the_error():
    def refused():
        raise LogError("can't list topics: denied")

    missing = []
    assert ask({"topics": refused}, 5.0, missing) == {}
    assert missing == ["topics: can't list topics: denied"]


def test_a_timeout_that_a_question_raises_itself_is_its_own():
    def tired():
        raise TimeoutError("the database did not answer")

    missing = []
    ask({"replicas": tired}, 5.0, missing)
    assert missing == ["replicas: TimeoutError: the database did not answer"]
