"""What the published HPO and NAS-like job sets get from the Summit log under three objectives.

Run it: ``python benchmarks/bench_objectives.py``. Twelve pairs of a job set and an objective, each replayed twice: with
the jobs' own work (when are they done?), and with work without end (samples and U, as BFTrainer measures them).
"""

from __future__ import annotations

from measure import SUMMIT, heading, table_head, table_row

from bfreplay import JobSet, NodeEvents, RunResult, load_events, load_jobs, replay_log
from bfreplay.policies import BFTrainerPolicy
from bfreplay.replay import ReplaySettings

T_FWD_S = 120.0
PARALLEL = 10
OBJECTIVES = ("throughput", "speed-up", "max-min")
JOB_SETS = {
    "HPO, 10 jobs": "hps-shufflenet-{}-10J.pkl",
    "HPO, 1,000 jobs": "hps-shufflenet-{}-1000J.pkl",
    "ImageNet, throughput": "ImageNet-imgps-{}-1001J.pkl",
    "ImageNet, speed-up": "ImageNet-spdup-{}-1001J.pkl",
}


def replayed(log: NodeEvents, jobs: JobSet, objective: str, *, unlimited_work: bool) -> RunResult:
    """One run on the Summit log."""
    return replay_log(
        log,
        jobs,
        BFTrainerPolicy(T_FWD_S, objective=objective),
        ReplaySettings(PARALLEL),
        unlimited_work=unlimited_work,
        efficiency=True,
    )


def main() -> None:
    """Print one table of runs and one of models."""
    log = load_events(SUMMIT / "summit-2021-02-node-events.parquet")
    print(heading(f"Objectives on the Summit log, {PARALLEL} jobs at once, T_fwd {T_FWD_S:.0f} s"))
    print(
        "Samples, U and rescales: work without end. All done: the jobs' own work, hours after the first was submitted; "
        "dedicated: on as many nodes that never go away.\n"
    )
    table_head("jobs", "objective", "samples (1e9)", "U", "rescales up", "all done, h", "dedicated, h")
    models: dict[tuple[str, str], list[str]] = {}
    for name, file in JOB_SETS.items():
        jobs = load_jobs(SUMMIT / file.format("Jbnd"), SUMMIT / file.format("JNPs"))
        for objective in OBJECTIVES:
            endless = replayed(log, jobs, objective, unlimited_work=True)
            run = replayed(log, jobs, objective, unlimited_work=False)
            efficiency = run.summary["efficiency"]
            done = [
                "-" if time_us is None else f"{(time_us - jobs[0].submit_us) / 3.6e9:.2f}"
                for time_us in (efficiency["last_finish_us"], efficiency["dedicated_last_finish_us"])
            ]
            samples = endless.summary["ledger"]["samples"]
            table_row(
                name,
                objective,
                f"{samples / 1e9:.1f}",
                f"{endless.u:.3f}",
                f"{endless.summary['n_scale_ups']:,}",
                *done,
            )
            for model, cells in of_models(run, endless).items():
                models.setdefault((name, model), []).extend(cells)
    print(
        "\nPer model. Completion: hours from submit to finish, median (95 %); running: minutes from first start to "
        "finish, median (95 %); share: of all samples, work without end.\n"
    )
    figures = ("completion, h", "running, min", "share")
    table_head("jobs", "model", *(f"{objective}: {figure}" for objective in OBJECTIVES for figure in figures))
    for (name, model), cells in models.items():
        table_row(name, model, *cells)


def of_models(run: RunResult, endless: RunResult) -> dict[str, list[str]]:
    """Completion, running time and share of each model."""
    jobs = run.jobs.assign(model=run.jobs["model"].fillna("shufflenet"))
    jobs["completion"] = (jobs["finished"] - jobs["submitted"]).dt.total_seconds() / 3600
    jobs["running"] = (jobs["finished"] - jobs["first_start"]).dt.total_seconds() / 60
    trained = endless.jobs.assign(model=endless.jobs["model"].fillna("shufflenet"))
    samples = trained.groupby("model")["done_samples"].sum()
    cells = {}
    for model, group in jobs.groupby("model"):
        if not (group["status"] == "finished").all():
            raise SystemExit(f"not every job of {model} finished: medians would tell of the quick ones alone")
        cells[str(model)] = [
            *(
                f"{group[what].median():.{digits}f} ({group[what].quantile(0.95):.{digits}f})"
                for what, digits in (("completion", 1), ("running", 0))
            ),
            f"{samples[model] / samples.sum():.0%}",
        ]
    return cells


if __name__ == "__main__":
    main()
