"""Running an agent: sessions, the loop, recovery."""
