"""The command line: its commands, and the exit codes of errors."""

from __future__ import annotations

import signal
import sys
import warnings
from io import TextIOWrapper
from typing import Any

import rich_click as click

from bfreplay import __version__
from bfreplay.commands.compare import compare
from bfreplay.commands.datasets import datasets
from bfreplay.commands.describe import describe
from bfreplay.commands.explain import explain
from bfreplay.commands.export_decision import export_decision
from bfreplay.commands.finish import finish
from bfreplay.commands.ingest import ingest
from bfreplay.commands.jobs import jobs
from bfreplay.commands.plot import plot
from bfreplay.commands.regret import regret
from bfreplay.commands.replay import replay
from bfreplay.commands.report import report
from bfreplay.commands.runs import runs
from bfreplay.commands.solvers import solvers
from bfreplay.commands.sweep import sweep
from bfreplay.commands.tune import tune
from bfreplay.errors import BfreplayError, InputError, OutputExistsError, SolverUnavailableError, printable

_BAD_INPUT = (InputError, OutputExistsError, SolverUnavailableError)
_STOPS = (KeyboardInterrupt, SystemExit)
_CONTEXT = {"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 110}


class _Group(click.RichGroup):
    """Turns errors into messages: exit code 2 for input, 3 for anything else, 130 and 143 for Ctrl-C and SIGTERM."""

    def invoke(self, ctx: click.Context) -> Any:
        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # as for stderr: no text may end a command
        # batch systems end a job by SIGTERM: clean up as on Ctrl-C
        warnings.formatwarning = lambda message, *_: printable(f"Note: {message}\n")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        try:
            return super().invoke(ctx)
        except BfreplayError as error:
            click.echo(printable(f"Error: {error}"), err=True)
            sys.exit(2 if isinstance(error, _BAD_INPUT) else 3)
        except (KeyboardInterrupt, SystemError) as error:
            # numba wraps a signal that meets compiled code in a SystemError
            asked = [e for e in (error, error.__cause__, error.__context__) if isinstance(e, _STOPS)]
            if not asked:
                raise
            if isinstance(asked[0], SystemExit):
                raise asked[0] from None
            click.echo("Aborted.", err=True)
            sys.exit(128 + signal.SIGINT)
        except BrokenPipeError:
            raise  # click leaves quietly
        except OSError as error:
            where = f"\n  file:     {error.filename}" if error.filename else ""
            click.echo(printable(f"Error: {error.strerror or error}{where}"), err=True)
            sys.exit(3)


@click.group(cls=_Group, context_settings=_CONTEXT)
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
    What was left to gain?        bfreplay regret RUN...
    Why did a job get its nodes?  bfreplay explain RUN --job JOB --at TIME
    Which solvers work here?      bfreplay solvers
    Which of them is best?        bfreplay compare formulations EVENTS --jobs JOBS
    Take one decision elsewhere:  bfreplay export-decision RUN --decision 1234 ...
    Public logs to try:           bfreplay datasets list

    Exit codes: 0 done; 1 failed runs (sweep), wrong answers (compare formulations --strict); 2 bad input; 3 any other
    error; 130 Ctrl-C. Words are explained in docs/glossary.md.
    """


for command in (
    ingest,
    describe,
    jobs,
    replay,
    report,
    plot,
    runs,
    sweep,
    finish,
    tune,
    explain,
    compare,
    regret,
    solvers,
    export_decision,
    datasets,
):
    main.add_command(command)


if __name__ == "__main__":
    main()
