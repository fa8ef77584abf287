"""The command line: its commands, and the exit codes of errors."""

from __future__ import annotations

import signal
import sys
import warnings
from collections import UserDict
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import rich_click as click

from bfreplay import __version__
from bfreplay._compiling import compile_mode
from bfreplay.errors import BfreplayError, InputError, OutputExistsError, SolverUnavailableError, printable
from bfreplay.options import field_name

COMMANDS = (
    "ingest",
    "describe",
    "jobs",
    "replay",
    "report",
    "plot",
    "runs",
    "sweep",
    "finish",
    "tune",
    "explain",
    "compare",
    "follow",
    "regret",
    "solvers",
    "export-decision",
    "datasets",
)
"""Commands, each the function of that name in the module of that name in ``bfreplay.commands``."""

_BAD_INPUT = (InputError, OutputExistsError, SolverUnavailableError)
_STOPS = (KeyboardInterrupt, SystemExit)
_CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110}


class _Commands(UserDict[str, Any]):
    """Commands by name, each imported when it is used; the content is the name of its function."""

    def __getitem__(self, name: str) -> click.Command:
        function: str = self.data[name]
        command: click.Command = getattr(import_module(f"bfreplay.commands.{function}"), function)
        return command


class _Group(click.RichGroup):
    """Turns errors into messages: exit code 2 for input, 3 for anything else, 130 and 143 for Ctrl-C and SIGTERM."""

    def invoke(self, ctx: click.Context) -> Any:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # as for stderr: no text may end a command
        # batch systems end a job by SIGTERM: clean up as on Ctrl-C
        warnings.formatwarning = lambda message, *_: printable(f"Warning: {message}\n")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            compile_mode()
            return super().invoke(ctx)
        except BfreplayError as error:
            click.echo(printable(f"Error: {error}"), err=True)
            sys.exit(2 if isinstance(error, _BAD_INPUT) else 3)
        except (KeyboardInterrupt, SystemError) as error:
            # numba wraps a signal that meets compiled code in a SystemError
            stops = [cause for cause in (error, error.__cause__, error.__context__) if isinstance(cause, _STOPS)]
            if not stops:
                raise
            if isinstance(stops[0], SystemExit):
                raise stops[0] from None
            click.echo("Aborted.", err=True)
            sys.exit(128 + signal.SIGINT)
        except BrokenPipeError:
            raise  # click leaves quietly
        except OSError as error:
            location = f"\n  file:     {error.filename}" if error.filename else ""
            click.echo(printable(f"Error: {error.strerror or error}{location}"), err=True)
            sys.exit(3)


@click.group(cls=_Group, commands=_Commands({name: field_name(name) for name in COMMANDS}), context_settings=_CONTEXT)
@click.version_option(__version__, prog_name="bfreplay")
def main() -> None:
    """Find out what elastic training could have run on the idle nodes of a cluster, from the log of its scheduler.

    \b
    A scheduler's log to events:  bfreplay ingest auto FILES... -o events.parquet
    What would idle nodes give?   bfreplay describe EVENTS
    How does my training scale?   bfreplay jobs fit MEASUREMENTS
    A campaign of trials:         bfreplay jobs make hpo -o campaign.toml
    What would training get?      bfreplay replay EVENTS --jobs JOBS --out RUN
    A page to look at and mail:   bfreplay report RUN... -o report.html
    Its pictures, for papers:     bfreplay plot NAME RUN
    Which runs have I made?       bfreplay runs FOLDER
    What if? Many at once:        bfreplay sweep SPEC.toml --out SWEEP
    When is my search over?       bfreplay finish EVENTS --jobs JOBS --dedicated 32
    Which options suit my log?    bfreplay tune EVENTS --jobs JOBS
    Is this run better, and why?  bfreplay compare runs RUN RUN
    Do two logs agree?            bfreplay compare logs EVENTS EVENTS
    What does our rule cost us?   bfreplay compare rules EVENTS --jobs JOBS
    What was left to gain?        bfreplay regret RUN...
    Why did a job get its nodes?  bfreplay explain RUN --job JOB --at TIME
    What would my cluster give now?  bfreplay follow slurm --jobs JOBS --out LIVE
    Which solvers work here?      bfreplay solvers
    Which of them is best?        bfreplay compare formulations EVENTS --jobs JOBS
    Take one decision elsewhere:  bfreplay export-decision RUN --decision 1234 ...
    Public logs to try:           bfreplay datasets list

    Exit codes: 0 done; 1 failed runs (sweep), wrong answers (compare formulations --strict); 2 bad input; 3 any other
    error; 130 Ctrl-C. Words are explained in docs/glossary.md.
    """


if __name__ == "__main__":
    main()
