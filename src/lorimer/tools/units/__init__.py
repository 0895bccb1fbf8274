"""Where a tool's function runs: in the loop, in a thread, or in a worker process that can be
killed."""
