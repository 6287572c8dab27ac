"""Sessions: visits of users with a gap of 30 minutes, corrected when a late view bridges two of them."""
