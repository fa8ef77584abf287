"""``bfreplay report``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import rich_click as click
from click.core import ParameterSource

from bfreplay.commands.inputs import command_line, say
from bfreplay.commands.option_flags import PLACE, log_parts
from bfreplay.commands.progress import announce_compiling
from bfreplay.errors import InputError
from bfreplay.options import option_name
from bfreplay.outputs import scratch_prefix


@click.command()
@click.argument("runs", metavar="RUN|EVENTS...", type=PLACE, nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    "out",
    metavar="FILE",
    type=PLACE,
    default=Path("report.html"),
    help="Page to write; its name ends in .html.",
)
@click.option("--force", is_flag=True, help="Replace the page if it exists.")
@click.option("--quiet", is_flag=True, help="Do not print the path of the page.")
@click.option_panel("Of EVENTS")
@log_parts("Of EVENTS")
@click.pass_context
def report(
    context: click.Context, /, runs: tuple[Path, ...], out: Path, force: bool, quiet: bool, **options: Any
) -> None:
    """Write one self-contained HTML page about finished runs, or about the idle nodes of EVENTS.

    Each RUN is a folder of 'bfreplay replay --out'. The page has the headline figures, and nodes over time, node-hours
    by label, jobs, idle intervals, rescales, decisions and baselines, as zoomable pictures and sortable tables. It
    opens in any browser without a network, and can be mailed.

    Several runs, labelled A, B, ... in the order given, are compared with the first, as by 'bfreplay compare runs':
    they must have the same jobs, log and window. Runs on a log and on clusters are compared by their jobs, or shown
    side by side if these differ. A single folder of 'bfreplay finish --out', 'bfreplay compare rules --out' or
    'bfreplay sweep --out' gets a page of its own.

    EVENTS, one log or several, get a page of what 'bfreplay describe' says of them: how much is idle, where, when and
    why, and what changed from the first log to the last.

    \b
    Examples:
      bfreplay report run
      bfreplay report run -o summit.html --force
      bfreplay report exact equal-share published -o three-policies.html
      bfreplay report sweep -o sweep.html
      bfreplay report june.parquet july.parquet --partition gpu --by month -o idle.html
    """
    from bfreplay.datasets.named_inputs import is_bundled
    from bfreplay.report.page.document import write_comparison_report, write_report
    from bfreplay.report.page.templates import check_report
    from bfreplay.result_folders.records import FINISH, RULES, SWEEP
    from bfreplay.runs import RunResult
    from bfreplay.runs.scheduling_metrics import cluster_of

    check_report(out, overwrite=force)
    if any(run.is_file() or is_bundled(run) or (run.suffix and not run.exists()) for run in runs):
        _write_events(runs, options, out, force)
    elif given := [
        option_name(name) for name in options if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]:
        replays = given[0] not in ("by", "batch-jobs", "tz")
        raise InputError(
            f"--{given[0]} is for logs: a run is of the nodes on which it was replayed",
            value=str(runs[0]),
            expected="files of EVENTS",
            fix=f"replay with it: bfreplay replay EVENTS --{given[0]} ... --out RUN"
            if replays
            else f"describe the log of the run: bfreplay report EVENTS --{given[0]} ...",
        )
    elif len(runs) == 1 and (runs[0] / FINISH.record_file).is_file():
        from bfreplay.report.page.finish_page import write_finish_report

        write_finish_report(runs[0], out, overwrite=force)
    elif len(runs) == 1 and (runs[0] / RULES.record_file).is_file():
        from bfreplay.report.page.rules_page import write_rules_report

        write_rules_report(runs[0], out, overwrite=force)
    elif len(runs) == 1 and (runs[0] / SWEEP.record_file).is_file():
        from bfreplay.experiments.sweep import SweepResult
        from bfreplay.report.page.sweep_page import write_sweep_report

        write_sweep_report(SweepResult.load(runs[0]), out, overwrite=force)
    elif len(runs) == 1:
        write_report(RunResult.load(runs[0]), out, overwrite=force)
    else:
        from bfreplay.experiments import RunComparison, compare
        from bfreplay.experiments.run_comparison.pairing import labels_of

        for run in runs:
            if (run / FINISH.record_file).is_file():
                fix = f"bfreplay report {run}; to compare two searches: bfreplay finish --jobs FIRST --against OTHER"
                raise InputError("a finish has a page of its own", file=run, expected="run folders", fix=fix)
        results = [RunResult.load(run) for run in runs]
        by_label = dict(zip(labels_of(len(results)), results, strict=True))
        with tempfile.TemporaryDirectory(prefix=scratch_prefix("report")) as folder:
            comparison = Path(folder) / "comparison"
            try:
                compare(*results, out=comparison, session=command_line())
            except InputError:
                if len({cluster_of(run.record) for run in results}) == 1:
                    raise
                write_comparison_report(by_label, out, overwrite=force)
            else:
                write_comparison_report(by_label, out, RunComparison.load(comparison), overwrite=force)
    if not quiet:
        say(f"wrote {out.resolve()}", err=True)


def _write_events(files: tuple[Path, ...], options: dict[str, Any], out: Path, force: bool) -> None:
    """Write the page of logs."""
    from bfreplay.datasets.idleness.side_by_side import SideBySide
    from bfreplay.report.page.idleness_page import write_idleness_report

    if folders := [file for file in files if file.is_dir()]:
        fix = "report runs and logs one after the other"
        raise InputError("a page is of runs, or of logs", file=folders[0], expected="a file of EVENTS", fix=fix)
    announce_compiling(quiet=False)
    described = SideBySide.describe(files, **options)
    given = {name: value for name, value in options.items() if value not in (None, ())}
    write_idleness_report(described, given, out, overwrite=force)
