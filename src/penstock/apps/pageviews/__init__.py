"""Page views: by the minute and right now, and corrected by phones that come late."""
