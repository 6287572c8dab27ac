"""The web console: what is going on, live in a browser, and the actions on it; reads through `ops`."""
