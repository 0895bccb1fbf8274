"""Programs whose arguments are more than options and operands; one file a family."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lorimer.safety.shell.analysis import Analysis, Output
from lorimer.safety.shell.invoke import Invocation
from lorimer.safety.shell.judges import (
    awk,
    builtins,
    files,
    filters,
    find,
    git,
    interpreters,
    network,
    sed,
    shell_options,
    shells,
    wrappers,
)
from lorimer.safety.shell.table import Program

Judge = Callable[[Analysis, Invocation, str, Program], Output]

JUDGES: Mapping[str, Judge] = {
    **builtins.JUDGES,
    **files.JUDGES,
    **filters.JUDGES,
    **wrappers.JUDGES,
    **shells.JUDGES,
    **shell_options.JUDGES,
    **interpreters.JUDGES,
    **network.JUDGES,
    "find": find.judge,
    "sed": sed.judge,
    "awk": awk.judge,
    "git": git.judge,
}
