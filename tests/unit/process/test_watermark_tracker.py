"""The tracker of a flow's watermark, over random logs, batches, writers and kills."""

from random import Random

from penstock.pipeline.tracker import MOST, Demand, WatermarkTracker, Writer
from penstock.process.time.watermark import TimeLine

LINE = TimeLine("views", "at")
DELAY = 30


class Run:
    """A flow upstream, which writes what it has read of each origin when it comes to it, and one behind it.

    A batch meets the last tick that was written before it. A kill leaves the last tick and the checkpoint.
    """

    def __init__(self, seed, disorder):
        self.random = Random(seed)
        self.origins = {
            f"f t/{number}": self.times(disorder) for number in range(self.random.randrange(1, 4))
        }
        self.log = {number: [] for number in range(self.random.randrange(1, 4))}
        self.position = dict.fromkeys(self.log, 0)
        self.tracker = WatermarkTracker((Demand(LINE, DELAY),))
        self.tick = (None, self.tracker.to_dict(), dict(self.position))
        self.late, self.highest = [], {}

    def times(self, disorder):
        clock, found = self.random.randrange(100), []
        for _ in range(self.random.randrange(60)):
            clock += self.random.randrange(40)
            found.append(clock - self.random.randrange(disorder + 1))
        return found

    def play(self):
        while any(self.origins.values()) or self.unread():
            self.random.choice([self.write, self.batch, self.batch, self.write_tick, self.kill])()
        self.write_tick()

    def write(self):
        """A lane of the flow upstream: a run of one origin, over all partitions at once."""
        origin, times = self.random.choice(list(self.origins.items()))
        for _ in range(min(len(times), self.random.randrange(30))):
            partition = self.random.choice(list(self.log))
            self.log[partition].append((origin, times.pop(0)))

    def batch(self):
        start, most = dict(self.position), self.random.choice([3, 10, 1000])
        for partition, events in self.log.items():
            taken = events[start[partition] : start[partition] + self.random.randrange(most)]
            self.position[partition] += len(taken)
            self.judge(taken)
        self.learn(start)

    def judge(self, taken):
        for origin, time in taken:
            if self.tick[0] is not None and time < self.tick[0]:
                self.late.append((origin, time, self.highest.get(origin, time)))
        for origin, time in taken:
            self.highest[origin] = max(time, self.highest.get(origin, time))

    def learn(self, start):
        found = {}
        for partition, events in self.log.items():
            for origin, time in events[start[partition] : self.position[partition]]:
                writer = f"{partition} {origin}"
                found[writer] = max(time, found.get(writer, time))
        self.tracker.learn({LINE: found}, 0.0)
        self.tracker.read(LINE.source, self.unread(), self.position)

    def unread(self):
        return {each for each, events in self.log.items() if self.position[each] < len(events)}

    def write_tick(self):
        heard = {writer.partition(" ")[2] for _, writer in self.tracker.writers()}
        waiting = {origin for origin, times in self.origins.items() if times}
        waiting |= {each for p, events in self.log.items() for each, _ in events[self.position[p] :]}
        if waiting - heard:
            return  # the flow upstream has or has brought something of which nothing was heard
        self.tick = (self.tracker.advance(0.0), self.tracker.to_dict(), dict(self.position))

    def kill(self):
        self.tracker = WatermarkTracker((Demand(LINE, DELAY),))
        self.tracker.restore(self.tick[1])
        self.tracker.resume(0.0)
        self.learn(self.tick[2])


def played(seed, disorder):
    run = Run(seed, disorder)
    run.play()
    return run


def test_events_in_the_order_of_their_writers_are_never_late():
    for seed in range(400):
        assert played(seed, disorder=DELAY).late == [], seed


def test_an_event_is_late_only_behind_its_own_writer():
    late = [each for seed in range(200) for each in played(seed, disorder=5 * DELAY).late]
    assert late
    assert all(time < highest - DELAY for _, time, highest in late)


def test_in_the_end_the_watermark_is_behind_the_least_highest_time():
    for seed in range(200):
        run = played(seed, disorder=0)
        highest = run.tracker.maxima.get(LINE, {}).values()
        assert (run.tick[0] is None) == (not highest), seed
        assert not highest or min(highest) - DELAY <= run.tick[0] <= max(highest) - DELAY, seed


def test_partitions_are_waited_for_as_soon_as_they_have_something_to_read():
    tracker = WatermarkTracker((Demand(LINE, DELAY),))
    tracker.learn({LINE: {"0": 500}}, 1.0)
    tracker.read("views", unread={1}, read={0, 1, 2})
    assert tracker.advance(0.0) is None
    tracker.learn({LINE: {"1": 100}}, 2.0)
    tracker.read("views", unread=(), read={0, 1, 2})
    assert tracker.advance(0.0) == 70  # partition 2 is empty
    tracker.learn({LINE: {"3": 90}}, 3.0)  # it was added, and is older
    assert tracker.advance(0.0) == 70
    tracker.learn({LINE: {"1": 900, "3": 700}}, 4.0)
    assert tracker.advance(0.0) == 470


def test_a_writer_that_is_quiet_while_others_go_on_is_not_waited_for():
    tracker = WatermarkTracker((Demand(LINE, DELAY, idle=10.0),))
    tracker.learn({LINE: {"0": 500, "1": 100}}, 0.0)
    tracker.learn({LINE: {"0": 900}}, 9.0)
    assert (tracker.advance(0.0), tracker.quiet()) == (70, set())
    tracker.learn({LINE: {"0": 950}}, 10.0)
    assert tracker.quiet() == {("views", "1")}
    assert (tracker.advance(0.0), tracker.without_quiet(0.0)) == (70, 920)  # there may be more of it
    tracker.allow({("views", "1"): 920})
    tracker.learn({LINE: {"0": 990}}, 20.0)
    assert tracker.advance(0.0) == 920


def test_quiet_begins_anew_when_a_flow_does():
    tracker = WatermarkTracker((Demand(LINE, DELAY, idle=10.0),))
    tracker.learn({LINE: {"0": 500, "1": 100}}, 0.0)
    other = WatermarkTracker(tracker.demands)
    other.restore(tracker.to_dict())
    other.resume(1000.0)
    other.learn({LINE: {"0": 900}}, 1001.0)
    assert (other.quiet(), other.advance(0.0)) == (set(), 70)


def test_several_watermarks_of_a_flow_are_the_least_of_them():
    other = TimeLine("clicks", "at", future=60)
    tracker = WatermarkTracker((Demand(LINE, 10), Demand(other, 100)))
    tracker.learn({LINE: {"0": 500}}, 0.0)
    assert tracker.advance(1.0) is None  # nothing was heard of the other
    assert tracker.advance(60.0) == 490  # nor will there be
    tracker.learn({LINE: {"0": 1500}, other: {"0": 1000}}, 0.0)
    assert tracker.advance(0.0) == 900
    assert tracker.follow(2000) == 2000
    assert tracker.advance(0.0) == 2000


def test_a_writer_is_a_partition_a_flow_and_its_origin():
    assert Writer.parse("3") == Writer(3)
    assert Writer.parse("3 shop.bill sales/0") == Writer(3, "shop.bill", "sales", 0)
    assert Writer.parse("3 shop.counts lane/1").in_lane
    assert Writer.parse("3 shop.views") == Writer(3, "shop.views")
    assert Writer.parse("3 what ever/x y") == Writer(3)


def test_writers_that_anybody_can_make_up_are_bounded():
    """A header names its writer: a thousand names must not make a thousand ticks grow without end."""
    tracker = WatermarkTracker((Demand(LINE, DELAY),))
    for batch in range(2):
        tracker.learn(
            {LINE: {f"{n % 4} strange.flow t/{batch * MOST + n}": 1000 + n for n in range(MOST)}}, 1.0
        )
    assert len(tracker.writers()) == MOST + 4
    assert tracker.maxima[LINE]["3"] == 1000 + MOST - 1
