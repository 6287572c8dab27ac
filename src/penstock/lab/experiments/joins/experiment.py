"""The three joins, described."""

from penstock.lab.control import Choice, Slider
from penstock.lab.experiment import Experiment
from penstock.lab.experiments.joins.work import KINDS, work

EXPERIMENT = Experiment(
    id="joins",
    title="The three joins",
    question="What does a join have to keep, and for how long, to find all pairs?",
    watch=(
        "A line is a result: it joins an event above with one below. A ring alone found nobody.",
        "Two streams: with a longer reach more clicks find their impression, and state grows with it.",
        "A stream and a table: a payment that comes late gets the row of now, or that of its own time.",
        "Two tables: a change of a product updates every order of it. The view is right, however late it is.",
        "The truth is what the generator has made; a result that differs from it is counted as wrong.",
    ),
    explained=(
        "An interval join buffers both streams, because either event may come first. The reach and the "
        "watermark say when an event can't find a partner any more: then it leaves state, and an outer join "
        "emits it alone.",
        "A stream–table join keeps the table, one row for each key, whatever the number of events. It sees "
        "the row that has arrived. A temporal (as-of) join also keeps replaced rows, for as long as its "
        "history says, and waits for the watermark: its answer does not depend on what came first.",
        "A table–table join keeps both tables. Its result is a materialized view: each change of either "
        "table emits the rows of the result that it changes, as inserts, updates and deletes.",
    ),
    code="""@shop.flow(
    reads={"clicks": clicks, "impressions": impressions},
    writes=clicked,
    output="append",
)
def with_impression(clicks, impressions):
    near = joins.within(
        impressions, on="ad", time="at", before="10 seconds", how="left",
        watermark="4 seconds", names=("click", "impression"),
    )
    return clicks.transform(near).select("ad", "click.at", "impression.id")
""",
    page="joins.md",
    work=work,
    controls=(
        Choice("kind", "Kind", tuple(KINDS), next(iter(KINDS))),
        Slider("reach", "Reach: how far apart, or how long old rows are kept", 1, 30, 1, 8, "s"),
        Slider("rate", "Events", 0, 40, 1, 8, "a second", is_live=True),
    ),
    seconds=600.0,
)
