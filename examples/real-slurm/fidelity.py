"""Predicted against really trained: repetitions of a pilot on a real Slurm, and how far replays are from them.

python fidelity.py run --dir CLUSTER --out REP --minutes 10 --seed 1 --training training.toml --measured jobs.csv
python fidelity.py table REP... --join-s 0.4 --json fidelity.json --picture fidelity.png
python fidelity.py delays --with REP... --without REP...
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import load
import numpy as np
from cluster import Cluster, ClusterError
from predictions import CHARGINGS, FEEDINGS, PARTITION, PARTS, Repetition, accounted

import bfreplay

PILOT_ALONE_S = 20
"""By how much the pilot begins before the load, and about as much it ends after it."""
LONGEST_WAIT_S = 120

Table = list[list[str]]


# -- a repetition ------------------------------------------------------------------------------------------------------


def spawn(words: Sequence[object], env: dict[str, str], log: Path) -> subprocess.Popen[bytes]:
    """Start a program in the background, its messages into a file."""
    with log.open("wb") as stream:
        return subprocess.Popen([str(word) for word in words], env=env, stdout=stream, stderr=stream, cwd="/")


def end(process: subprocess.Popen[bytes]) -> None:
    """End a program, at once if it does not obey."""
    process.terminate()
    try:
        process.wait(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for_line(file: Path, words: str, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a file has some words; raise if the program ends before."""
    limit = time.monotonic() + LONGEST_WAIT_S
    while not (file.exists() and words in file.read_text(errors="replace")):
        if process.poll() is not None or time.monotonic() > limit:
            ended = "waits" if process.returncode is None else f"has ended with {process.returncode}"
            raise ClusterError(f"{file} has no {words!r}: {process.args[0]} {ended}; see {log}")
        time.sleep(0.2)


def run(options: argparse.Namespace) -> int:
    """Carry out one repetition, and end all that it started."""
    cluster, out = Cluster(options.dir), options.out.resolve()
    if out.exists() and any(out.iterdir()):
        raise ClusterError(f"{out} is there, with files; give a new folder for each repetition")
    out.mkdir(parents=True, exist_ok=True)
    measured = out / f"measured{options.measured.suffix}"
    shutil.copyfile(options.training, out / "training.toml")
    shutil.copyfile(options.measured, measured)
    facts = {"seed": options.seed, "minutes": options.minutes, "pilot": not options.no_pilot}
    (out / "repetition.json").write_text(json.dumps(facts) + "\n")
    places = (str(Path(bfreplay.__file__).parents[1]), sysconfig.get_path("purelib"))
    env = cluster.env | {"PYTHONPATH": os.pathsep.join(places)}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("fidelity.py: ended by SIGTERM"))
    begin = time.time()
    with contextlib.ExitStack() as started, (out / "load.jsonl").open("w") as log:
        drive = load.Load(cluster, log, options.seed)
        if not options.no_pilot:
            pilot = start_with_pilot(cluster, options, measured, env, started)
        started.callback(drive.cancel)
        drive.run(options.minutes, "sparse")
        if not options.no_pilot:
            try:
                if pilot.wait(timeout=LONGEST_WAIT_S):
                    raise ClusterError(f"pilot.py ended with {pilot.returncode}; see {out / 'pilot.err'}")
            except subprocess.TimeoutExpired:
                raise ClusterError(f"pilot.py did not end by itself; see {out / 'pilot.err'}") from None
            time.sleep(5)  # the follower's poll and hold-back, and accounting
    load.export(cluster, out / "accounting", begin)
    drive.write_batch(out / "accounting" / "batch.csv")
    print(f"{out}: {len(drive.batch)} batch jobs")
    return 0


def start_with_pilot(
    cluster: Cluster, options: argparse.Namespace, measured: Path, env: dict[str, str], started: contextlib.ExitStack
) -> subprocess.Popen[bytes]:
    """Start the follower, then the pilot as the cluster's ordinary user; return the pilot after its time alone."""
    user, out = cluster.settings["user"], measured.parent
    as_user = ("runuser", "-u", user, "--", options.python)
    cluster.env["PYTHONPATH"] = env["PYTHONPATH"]
    cluster.ask(*as_user, "-c", "import bfreplay", limit_s=60)  # fails here, by name, where the user may not read it
    if subprocess.run(["runuser", "-u", user, "--", "test", "-x", out], check=False).returncode:
        raise ClusterError(f"{user}, as whom the pilot runs, may not enter {out}: chmod o+x it and the folders above")
    (out / "pilot").mkdir()
    shutil.chown(out / "pilot", user)
    words = (sys.executable, "-m", "bfreplay", "follow", "slurm", "--lends", f"partition={PARTITION}", "--poll", "1s")
    followed = ("--jobs", measured, "--out", out / "followed", "--quiet")
    follower = spawn((*words, *followed), env, out / "followed.err")
    started.callback(end, follower)
    wait_for_line(out / "followed" / "log.csv", cluster.nodes()[-1], follower, out / "followed.err")
    started.callback(
        cluster.ask, "scancel", f"--user={user}", f"--partition={PARTITION}", check=False
    )  # workers of a pilot that was killed
    more_s = 2 * PILOT_ALONE_S + 5
    files = ("--training", options.training.resolve(), "--measured", measured, "--out", out / "pilot")
    pilot_words = ("--partition", PARTITION, "--nodes", len(cluster.nodes()), "--t-fwd", options.t_fwd, "--settle", 0.3)
    minutes = ("--minutes", options.minutes + more_s / 60, *(["--no-learning"] if options.no_learning else []))
    here = Path(__file__).resolve().with_name("pilot.py")
    pilot = spawn((*as_user, here, "run", *files, *pilot_words, *minutes), env, out / "pilot.err")
    started.callback(end, pilot)
    wait_for_line(out / "pilot" / "log.jsonl", '"begin"', pilot, out / "pilot.err")
    time.sleep(PILOT_ALONE_S)
    return pilot


# -- predicted / trained -----------------------------------------------------------------------------------------------


def measure(repetition: Repetition, recommended: tuple[str, str]) -> dict[str, Any]:
    """Return all figures of a repetition."""
    log = repetition.log
    predicted = {}
    for feeding in FEEDINGS:
        for charging in CHARGINGS:
            settles = charging in ("settle", "min-age")
            if (feeding == "decisions" and settles) or (
                charging == "min-age" and (feeding == "workers" or not repetition.join_s)
            ):
                continue
            predicted[feeding, charging] = repetition.predict(feeding, charging)
    if recommended not in predicted:
        shown = ", ".join("/".join(key) for key in predicted)
        raise ClusterError(f"--recommended {'/'.join(recommended)}: expected one of {shown} (min-age needs --join-s)")
    back = log.went_back(repetition.jobs)
    return {
        "folder": str(repetition.folder),
        "trained": log.trained,
        "predicted": {"/".join(key): prediction.samples for key, prediction in predicted.items()},
        "parts": repetition.parts(predicted[recommended]),
        "told": log.told_before_the_end(),
        "met": repetition.decisions_met(),
        "join_delays_s": repetition.join_delays_s(),
        "starts": len(log.runs()),
        "went_back": [start._asdict() for start in back],
    }


def shares(figures: dict[str, Any], key: str) -> list[float]:
    """Return predicted / trained, in total and of each job; nan for a job that made nothing."""
    trained, predicted = figures["trained"], figures["predicted"][key]
    pairs = [(sum(predicted.values()), sum(trained.values())), *((predicted[job], trained[job]) for job in trained)]
    return [part / whole if whole else float("nan") for part, whole in pairs]


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)) + "\n"


def share_rows(all_figures: Sequence[dict[str, Any]], recommended: str) -> Table:
    """Return a row for each way: mean over the repetitions, smallest to largest."""
    rows = []
    for key in all_figures[0]["predicted"]:
        feeding, charging = key.split("/")
        columns = zip(*(shares(figures, key) for figures in all_figures), strict=True)
        cells = [
            f"{column[0]:.3f}"
            if len(column) == 1
            else f"{statistics.mean(column):.3f} ({min(column):.3f} to {max(column):.3f})"
            for column in columns
        ]
        mark = "**recommended** " if key == recommended else ""
        rows.append([mark + FEEDINGS[feeding], CHARGINGS[charging], *cells])
    return rows


def checks_of(figures: dict[str, Any]) -> list[str]:
    """Return a sentence for each check, those that fail marked."""
    (n_told, n_gone), (n_met, n_taken) = figures["told"], figures["met"]
    too_far = [start for start in figures["went_back"] if start["samples"] > start["allowed"]]
    furthest = max((start["samples"] / start["allowed"] for start in figures["went_back"]), default=0.0)
    return [
        f"{'ok' if n_told == n_gone else 'FAILED'}: SIGTERM was seen before the end of {n_told} of {n_gone} workers",
        f"{'FAILED' if too_far else 'ok'}: progress went back at {len(figures['went_back'])} of {figures['starts']} "
        f"starts, by {furthest:.0%} of what the checkpoint interval allows at most"
        + "".join(f"; {s['job']} run {s['number']}: {s['samples']:,.0f} of {s['allowed']:,.0f}" for s in too_far),
        f"decisions that the replay of the workers takes: {n_met} of {n_taken}",
        f"workers joined {statistics.mean(delays):.2f} s after their node became idle by the followed log (mean of "
        f"{len(delays)}, {min(delays):.2f} to {max(delays):.2f}): --join-s of other repetitions"
        if (delays := figures["join_delays_s"])
        else "no node became idle: nothing is known of --join-s",
    ]


def table(options: argparse.Namespace) -> int:
    """Print what was predicted and trained, the parts of the difference, and the checks."""
    recommended = tuple(options.recommended.split("/"))
    repetitions = [Repetition(folder, options.join_s, options.pool) for folder in options.repetitions]
    if len({tuple(repetition.log.jobs) for repetition in repetitions}) > 1:
        raise ClusterError("the repetitions have different jobs; give those of one training.toml")
    all_figures = [measure(repetition, recommended) for repetition in repetitions]
    head = ["nodes by", "charging", "total", *repetitions[0].log.jobs]
    for figures in (*all_figures, None):
        if figures is None and len(all_figures) == 1:
            break
        group = [figures] if figures else all_figures
        print(f"## {figures['folder'] if figures else f'All {len(group)}: mean (smallest to largest)'}\n")
        trained = {job: sum(one["trained"][job] for one in group) for job in group[0]["trained"]}
        total = sum(trained.values())
        print(f"Trained: {total:,.0f} samples ({', '.join(f'{job} {n:,.0f}' for job, n in trained.items())})\n")
        print(markdown(head, share_rows(group, options.recommended)))
        parts = {part: sum(one["parts"][part] for one in group) for part in PARTS}
        rows = [[part, f"{n:+,.0f}", f"{n / total:+.2%}"] for part, n in (*parts.items(), ("sum", sum(parts.values())))]
        print(markdown(["part of the difference", "samples", "of trained"], rows))
        print("\n".join(f"- {line}" for line in (checks_of(figures) if figures else ())) + "\n")
    if options.json:
        document = {
            "recommended": options.recommended,
            "join_s": options.join_s,
            "pool": options.pool,
            "repetitions": all_figures,
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.picture:
        draw_progress(repetitions[0], recommended, options.picture)
    return 0


def draw_progress(repetition: Repetition, recommended: tuple[str, str], file: Path) -> None:
    """Draw the samples so far, predicted and trained, of all jobs and of each."""
    from matplotlib.figure import Figure

    log = repetition.log
    start_us, end_us = log.window_us
    times_us = np.linspace(start_us, end_us, 41)[1:].astype(np.int64)
    predicted = [repetition.predict(*recommended, until_us=int(time_us)).samples for time_us in times_us]
    reports = {job: [(0.0, 0.0)] for job in log.jobs}
    for entry in log.of("samples"):
        reports[entry["job"]].append((entry["at"] - start_us / 1e6, entry["samples"]))
    trained = {job: np.interp((times_us - start_us) / 1e6, *zip(*reports[job], strict=True)) for job in log.jobs}
    figure = Figure(figsize=(3.2 * (1 + len(log.jobs)), 3), layout="constrained")
    for axes, job in zip(figure.subplots(1, 1 + len(log.jobs)), ("", *log.jobs), strict=True):
        names = [job] if job else log.jobs
        axes.plot((times_us - start_us) / 60e6, sum(trained[name] for name in names), label="trained")
        axes.plot(
            (times_us - start_us) / 60e6,
            [sum(samples[name] for name in names) for samples in predicted],
            "--",
            label="predicted",
        )
        axes.set(title=job or "all jobs", xlabel="minutes", ylabel="samples")
        axes.legend()
    figure.savefig(file)


# -- delays of batch jobs ----------------------------------------------------------------------------------------------


def batch_starts(folders: Sequence[Path]) -> dict[tuple[int, int], float]:
    """Return by seed and number how long each batch job waited, of those that started."""
    waits: dict[tuple[int, int], float] = {}
    for folder in folders:
        seed = json.loads((folder / "repetition.json").read_text())["seed"]
        with (folder / "accounting" / "batch.csv").open(newline="") as rows:
            for row in csv.DictReader(rows):
                key = seed, int(row["number"])
                if key in waits:
                    raise ClusterError(f"{folder}: seed {seed} is there twice; give one repetition of a seed")
                if row["started"]:
                    waits[key] = float(row["started"]) - float(row["submitted"])
    return waits


def delays(options: argparse.Namespace) -> int:
    """Print how much later batch jobs started with the pilot, and what a replay says of the same minutes."""
    waits, without = batch_starts(options.with_pilot), batch_starts(options.without)
    late = np.array([waits[key] - without[key] for key in sorted(waits.keys() & without.keys())])
    if not len(late):
        raise ClusterError("no batch job started in both; give repetitions of the same seeds")
    quantiles = ", ".join(f"{percent} % {np.percentile(late, percent):.2f}" for percent in (10, 25, 75, 90))
    print(f"{len(late)} pairs: median {np.median(late):.2f} s, mean {late.mean():.2f} s, largest {late.max():.2f} s")
    print(f"({quantiles}; not started in both: {len(waits.keys() ^ without.keys())})\n")
    counts, edges = np.histogram(late, bins=np.arange(np.floor(late.min()), np.ceil(late.max()) + 0.51, 0.5))
    print("\n".join(f"{edge:6.1f} s {'#' * n} {n}" for edge, n in zip(edges, counts.tolist(), strict=False)) + "\n")
    rows = []
    for folder in options.with_pilot:
        repetition = Repetition(folder)
        log = repetition.log
        file = folder / "accounting" / "batch-jobs.parquet"
        file.unlink(missing_ok=True)
        events = accounted(folder / "accounting", log.begin["nodes"], log.window_us, file)
        record = bfreplay.replay_log(
            events,
            repetition.jobs,
            t_fwd=log.begin["t_fwd_s"],
            settle=log.begin["settle_s"],
            batch_jobs=file,
            clear=options.clear_s,
            efficiency=False,
            bound=False,
        ).summary.batch_delays
        names = ("n_jobs", "n_jobs_met", "n_jobs_delayed")
        seconds = (record.direct_us, record.total_us, record.worst_us)
        rows.append([folder.name, *(str(getattr(record, n)) for n in names), *(f"{us / 1e6:.1f}" for us in seconds)])
    print(f"First-order harm of the same minutes by a replay, at --clear {options.clear_s:g}s:\n")
    head = ["repetition", "batch jobs", "met a held node", "late", "direct, s", "in all, s", "largest, s"]
    print(markdown(head, rows))
    return 0


def read_options(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("run", help="carry out one repetition")
    one.add_argument("--dir", type=Path, required=True, help="folder of the cluster")
    one.add_argument("--out", type=Path, required=True, help="new folder, which the cluster's user may enter")
    one.add_argument("--minutes", type=float, default=10, help="of load (default 10)")
    one.add_argument("--seed", type=int, default=1, help="of the load (default 1)")
    one.add_argument("--training", type=Path, required=True, help="jobs of the pilot")
    one.add_argument("--measured", type=Path, required=True, help="the same jobs as pilot.py measure wrote them")
    one.add_argument("--t-fwd", type=float, default=120, help="forward-looking time of the pilot, s (default 120)")
    one.add_argument("--python", default=sys.executable, help="Python of the pilot, which the cluster's user may run")
    one.add_argument("--no-pilot", action="store_true", help="the load alone, the other half of a pair")
    one.add_argument("--no-learning", action="store_true", help="the pilot decides with what was measured before")
    many = commands.add_parser("table", help="predicted / trained, for each way of feeding and charging")
    many.add_argument("repetitions", type=Path, nargs="+", metavar="REP")
    many.add_argument("--join-s", type=float, default=0.0, help="measured time from a node's idling to its joining")
    many.add_argument(
        "--pool", choices=("startable", "idle"), default="startable", help="idle nodes of the followed log"
    )
    many.add_argument("--recommended", default="followed/min-age", help="FEEDING/CHARGING (default followed/min-age)")
    many.add_argument("--json", type=Path, help="file for all figures")
    many.add_argument("--picture", type=Path, help="file for the progress of the first repetition, .png or .svg")
    pairs = commands.add_parser("delays", help="delays of batch jobs, in pairs of the same seed")
    pairs.add_argument("--with", dest="with_pilot", type=Path, nargs="+", required=True, metavar="REP")
    pairs.add_argument("--without", type=Path, nargs="+", required=True, metavar="REP")
    pairs.add_argument("--clear-s", type=float, default=5.0, help="--clear of the replay (default 5, the GraceTime)")
    return parser.parse_args(words)


def main(words: Sequence[str] | None = None) -> int:
    """Carry out the command."""
    options = read_options(words)
    try:
        return {"run": run, "table": table, "delays": delays}[options.command](options)
    except (ClusterError, bfreplay.BfreplayError, OSError) as error:
        print(f"fidelity.py: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
