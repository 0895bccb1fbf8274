"""Ground floor: plain records and pure functions. No I/O; imports nothing else of lorimer."""
