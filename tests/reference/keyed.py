"""What is recent of a key at each event of a log, said as plainly as can be."""


def recent(log, within):
    """Of (key, time, …) in the log's order: for each, what came before it, near enough, the newest first."""
    emitted = []
    for place, (key, time, *_) in enumerate(log):
        near = [
            (other[1], number)
            for number, other in enumerate(log[: place + 1])
            if other[0] == key and time - within < other[1] <= time
        ]
        emitted.append([number for _, number in sorted(near, reverse=True)])
    return emitted
