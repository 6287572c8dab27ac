"""The Nexmark benchmark: its events, and the answers its queries have to give."""
