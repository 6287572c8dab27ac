"""Experiment 6: commands come in, events are kept, the balance is what they come to."""

from decimal import Decimal

from penstock.apps.bank.account import Deposit, Withdraw
from penstock.lab.control import Button, Choice, Slider
from penstock.lab.crew import Crew
from penstock.lab.experiment import Experiment
from penstock.lab.experiments.sourcing.histories import BEHIND, LENGTHS, Histories
from penstock.lab.experiments.sourcing.past import Past
from penstock.lab.experiments.sourcing.teller import STREAM, Teller
from penstock.lab.run import Run
from penstock.sourcing import EventStore

_TICK = 0.1
_LOOK = 5  # ticks between two looks at the past
_STEP = Decimal(25)
_CODE = """
accounts = CommandHandler(EventStore("bank", settings), account)
accounts.execute("ada", Deposit(Decimal("25.00")), id="deposit-1")

accounts.load("ada").state.balance  # the last snapshot, and the events behind it
accounts.load("ada", until=noon).state.balance  # as it was then
for record in store.read("account", "ada"):  # the whole history
    print(record.version, record.at, record.type, record.data)
"""


def work(run: Run) -> None:
    """Run it until it is over."""
    store = EventStore(run.schema(), run.settings)
    run.cleanup.callback(store.close)
    store.create()
    teller, past = Teller(run, store), Past(store, STREAM)
    teller.open()
    _show(run, teller)
    run.show(replay_events=None, replay_ms=None, lengths=list(LENGTHS), kept_behind=BEHIND)
    crew = Crew(run.closing)
    run.cleanup.callback(crew.close)
    crew.start("histories", Histories(run, store, int(run.value("most").replace(",", ""))).work)
    tick = 0
    while True:
        crew.check()
        _press(run, teller, past)
        teller.generate(run.value("rate"))
        _show(run, teller)
        if tick % _LOOK == 0:
            run.show(**past.now(), **past.ago(run.value("ago")))
        tick += 1
        run.rest(_TICK)


def _press(run: Run, teller: Teller, past: Past) -> None:
    for _ in range(run.pressed("deposit")):
        teller.handle(Deposit(_STEP))
    for _ in range(run.pressed("withdraw")):
        teller.handle(Withdraw(_STEP))
    for _ in range(run.pressed("overdraw")):
        teller.handle(Withdraw(teller.balance + 1))
    if run.pressed("replay"):
        found = past.replayed()
        run.show(**found)
        run.report(f"{found['replay_events']:,} events replayed in {found['replay_ms']} ms")


def _show(run: Run, teller: Teller) -> None:
    run.show(accepted=teller.accepted, refused=teller.refused, strip=list(teller.shown))


EXPERIMENT = Experiment(
    "sourcing",
    "Event sourcing",
    "If only events are kept and nothing is ever overwritten: what is the balance now, what was it a minute "
    "ago, and what does it cost to know?",
    watch=(
        "Press “Deposit” and “Withdraw”: each command appends an event at the end of the stream. No row is "
        "changed; PostgreSQL itself refuses updates and deletions here.",
        "Press “Withdraw too much”: the command is refused, and the stream stays as it is.",
        "Move “How long ago”: the balance of that moment is derived from the events up to it.",
        "Press “Replay from the first event”: the same balance comes out, however often you ask.",
        "Compare the bars: without a snapshot, loading takes longer with every event. With one it reads the "
        "snapshot and the events behind it, however long the history is.",
    ),
    explained=(
        "A command may be refused; an event has happened. The aggregate's function “decide” takes the state "
        "and a command and returns events or a refusal; “evolve” takes the state and an event and returns "
        "the new state. The state is derived: it is what all events come to, one after the other.",
        "The stream has a version, which is the number of its events. An append says which version it has "
        "seen. If somebody else was faster, the database refuses it, and the command is decided again on the "
        "new state.",
        "Because no event is ever changed, every past state can be derived: add up the events until then. A "
        "mistake in the code can be corrected and the state replayed from scratch.",
        "A snapshot keeps the state at a version, here every 100 events. It is a cache and no truth: it may "
        "be deleted, and it is made again when the code of “evolve” changes. With 10 events there is none, "
        "because reading them all is as quick.",
    ),
    code=_CODE.strip(),
    page="sourcing.md",
    work=work,
    controls=(
        Slider("rate", "Commands a second", 0, 40, 1, 5, is_live=True),
        Slider("ago", "How long ago", 0, 120, 1, 10, "s", is_live=True),
        Choice("most", "Longest history that is measured", ("1,000", "100,000"), "100,000"),
        Button("deposit", "Deposit 25"),
        Button("withdraw", "Withdraw 25"),
        Button("overdraw", "Withdraw too much"),
        Button("replay", "Replay from the first event"),
    ),
    services=("postgres",),
)
