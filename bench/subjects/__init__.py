"""One file per framework. Each has:

- `DISTRIBUTION`: the installed package whose version is printed,
- `NOTE`: what a reader of its numbers must know,
- `open_subject()`: an async context manager that builds the agent and gives `run(task)`, a
  coroutine function that lets the agent work through one session of the task.
"""
