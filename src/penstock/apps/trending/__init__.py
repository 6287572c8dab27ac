"""Trending: the hashtags that rise most above what is usual for them, a few seconds after they began to."""
