"""penstock demo leaderboard."""

from penstock.apps.demo import Demo

demo = Demo(
    "leaderboard",
    "A leaderboard: the best hundred of 100,000 players, and the rank of any of them on request",
    module="penstock.apps.leaderboard.pipeline",
    work="penstock.apps.leaderboard.work:GamesWork",
    rate=500,
    seconds=20,
    next=(
        ("python -m bench leaderboard", "ten million players: how many games a second two cores take"),
        ("src/penstock/apps/leaderboard", "the whole application: start your own from it"),
        ("docs/keyed.md", "state of your own for each key"),
    ),
)
command = demo.command()
