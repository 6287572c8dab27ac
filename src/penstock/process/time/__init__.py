"""Event time: watermarks, the order of events, lateness."""
