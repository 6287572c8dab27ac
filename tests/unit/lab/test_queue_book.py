"""The book of the experiment on queues: what is counted of workers' reports."""

from penstock.lab.experiments.queue.book import Book


def noted(*lines, keys=2, each=3):
    book = Book(keys, each)
    for worker, word, task in lines:
        book.note(worker, word, task)
    return book


def worked(worker, task):
    return (worker, "begun", task), (worker, "done", task)


def test_tasks_in_order():
    book = noted(*worked("1", (0, 0)), *worked("1", (0, 1)), ("2", "begun", (1, 0)))
    assert book.figures() == {"done": 2, "redelivered": 0, "out_of_order": 0, "again": 0}
    assert book.rows() == ["dd.", "w.."]


def test_a_task_after_a_later_one_of_its_key_is_out_of_order():
    book = noted(*worked("1", (0, 2)), *worked("2", (1, 0)), *worked("2", (0, 0)), *worked("1", (0, 1)))
    assert book.figures()["out_of_order"] == 2
    assert book.rows() == ["ood", "d.."]


def test_what_is_repeated_counts_once_and_is_not_out_of_order():
    book = noted(*worked("1", (0, 0)), *worked("1", (0, 1)), *worked("2", (0, 0)), *worked("2", (0, 2)))
    assert book.figures() == {"done": 3, "redelivered": 1, "out_of_order": 0, "again": 0}
    assert book.rows() == ["rdd", "..."]


def test_a_killed_worker_leaves_its_task():
    book = noted(("1", "begun", (0, 0)), ("2", "begun", (1, 0)))
    assert book.lose("1") == (0, 0)
    assert book.lose("1") is None
    book.note("2", "done", (1, 0))
    book.note("2", "begun", (0, 0))
    assert (book.redelivered, book.rows()) == (1, ["w..", "d.."])


def test_what_a_killed_worker_held_and_had_not_begun_is_handed_out_again():
    book = Book(1, 2)
    book.note("2", "begun", (0, 1), deliveries=2)
    book.note("2", "done", (0, 1))
    assert (book.redelivered, book.rows()) == (1, [".r"])


def test_a_replay_is_counted_apart():
    book = noted(*worked("1", (0, 0)), ("2", "begun", (0, 1)))
    book.replay()
    for line in (*worked("1", (0, 0)), ("1", "begun", (0, 0)), ("2", "done", (0, 1))):
        book.note(*line)
    assert book.figures() == {"done": 2, "redelivered": 0, "out_of_order": 0, "again": 1}
