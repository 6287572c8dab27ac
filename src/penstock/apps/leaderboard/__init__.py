"""A leaderboard: the best hundred of any number of players, and the rank of each of them on request."""
