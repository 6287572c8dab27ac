"""Ads: impressions beside the clicks of the hour after them, and the click-through of each campaign."""
