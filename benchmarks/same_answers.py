"""Whether this checkout answers as another revision does: run folders, tables, pages and printed text, byte for byte.

    python benchmarks/same_answers.py REVISION            # REVISION's answers are kept in .same-answers/ and used again
    python benchmarks/same_answers.py REVISION --only replay

Run it with the Python of the virtual environment. Clocks stand still in both, so that nothing measured differs; when a
run began, schema versions, versions of libraries, ids of runs of a sweep (they depend on the schema) and checksums do
not count. Logs and traces of ../shared (or BFREPLAY_SHARED) are used where they are. Exit code 1, and a list, when
something differs.

Wording may change where `expected_differences.toml` says so: an entry has `files` (a pattern of names below the folder
of answers), `why`, and `old` and `new`: what REVISION wrote and what stands there now. With `whole = true` instead,
text that was printed differs as a whole; with `gone = true` the file is no more.
"""

from __future__ import annotations

import argparse
import difflib
import fnmatch
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bfreplay.milp.backends import BACKENDS

HERE = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("BFREPLAY_SHARED", HERE.parent / "shared")).resolve()
CACHE = HERE / ".same-answers"
EXPECTED = Path(__file__).with_name("expected_differences.toml")

_STILL = """\
import resource, time
time.perf_counter = lambda: 0.0
_usage = resource.getrusage
class _Still:
    def __init__(self, who):
        self._found = _usage(who)
    ru_maxrss = 0
    def __getattr__(self, name):
        return getattr(self._found, name)
resource.getrusage = _Still
"""
_SWEEP = """\
[run]
events = "sample"
jobs = "sample"
window = ["+0", "+1"]
[vary]
t-fwd = [60, 300, "auto"]
max-parallel = [3, 5]
[[runs]]
policy = "equal-share"
"""
_INPUTS = {
    "measured.csv": "nodes,samples_per_s\n1,100\n1,98\n2,190\n2,194\n4,350\n4,361\n8,610\n8,598\n16,900\n16,921\n",
    "broken.csv": "name,min_nodes,max_nodes,work,curve\na,4,2,1e6,resnet50\nb,one,2,-1,resnet50\n",
    "broken.toml": '[run]\nevents = "sample"\njobs = "sample"\n[vary]\nt-fwt = [60]\nmax-parallel = ["three"]\n',
    "broken-campaign.toml": '[campaign]\nname = "a"\ntrials = "ten"\n[campaign.pruner]\nkind = "median"\nwarm = 3\n',
}
_DAY = "2024-07-02 2024-07-03"
_GAVEL = '--cluster v100=8,p100=8,k80=8 --jobs "gavel(n=20, jobs_per_hour=8, multi_gpu=true)" --curves sample'
_LOGS = SHARED / "data/logs"
_BFTRAINER = SHARED / "data/bftrainer"

_CLUSTER = "--cluster gpu=16 --curves sample"
_GANG = "--cluster v100=8 --curves sample"
_HELP = (
    "replay",
    "ingest",
    "describe",
    "jobs",
    "jobs fit",
    "jobs make",
    "jobs make hpo",
    "jobs make list",
    "solvers",
    "compare",
    "compare runs",
    "compare rules",
    "compare formulations",
    "sweep",
    "tune",
    "finish",
    "regret",
    "explain",
    "export-decision",
    "plot",
    "report",
    "runs",
    "datasets",
    "datasets fetch",
)

MAKE = {
    "jobs-hpo": "jobs make hpo -o hpo.toml --trials 27 --pruner successive-halving --arrival poisson:30",
    "jobs-nas": "jobs make nas -o nas.toml --models 6",
    "jobs-optuna": "jobs make hpo -o optuna.toml --trials 20 --pruner median",
    "jobs-list": "jobs make list -o list.csv --job image-classifier:4 --job language-model:2",
    "jobs-throughputs": "jobs make throughputs -o throughputs.json",
}
RUN = {
    "replay": "replay sample --jobs sample --record-nodes --out bftrainer",
    "replay-json": "replay sample --jobs sample --json",
    "replay-published": f"replay sample --jobs sample --semantics published --window {_DAY} --out published",
    "replay-auto": "replay sample --jobs sample --t-fwd auto --out auto",
    "replay-unlimited": "replay sample --jobs sample --unlimited-work --objective max-min --out unlimited",
    "replay-look-ahead": f'replay sample --jobs sample --policy "look-ahead(events=2)" --window {_DAY} --out ahead',
    "replay-foresight": f'replay sample --jobs sample --policy "foresight(events=3)" --window {_DAY} --out foresight',
    "replay-equal": "replay sample --jobs sample --policy equal-share --out equal",
    "replay-list": 'replay sample --jobs list.csv --objective "0.7*throughput + 0.3*speed-up" --out list',
    **{
        f"replay-{name}": f"replay sample --jobs sample --solver {name} --window {_DAY} --out {name}"
        for name in BACKENDS.built_in
    },
    "replay-sos2": f"replay sample --jobs sample --solver cbc --formulation counts_sos2 --window {_DAY} --out sos2",
    "replay-limit": "replay sample --jobs sample --formulation published --out limit",
    "learning": "replay sample --jobs sample --learn-curves model --measurement-noise 0.05 --out learning",
    "campaign": "replay sample --jobs hpo.toml --out campaign",
    "campaign-small": "replay sample --jobs hpo.toml --max-parallel 4 --out small",
    "campaign-nas": "replay sample --jobs nas.toml --max-parallel 4 --out nas",
    "campaign-optuna": "replay sample --jobs optuna.toml --out optuna",
    "gavel": f"replay {_GAVEL} --policy gavel.max_min_fairness_perf --round 360 --fairness --out gavel",
    "gavel-packed": f"replay {_GAVEL} --policy gavel.max_min_fairness_packed --prices v100=0.74,p100=0.5 --out packed",
    "gavel-fifo": f"replay {_GAVEL} --policy gavel.fifo --measure 5:15 --out fifo",
    "gavel-idle": 'replay sample --jobs sample --policy "gavel.max_min_fairness_perf(gang=4)" --out idle',
    "typed": f"replay {_GAVEL} --out typed",
    "sweep": "sweep sweep.toml --out sweep --processes 1",
    "lab": f"compare formulations sample --jobs sample --window {_DAY} --sample 6 --out lab",
    "tune": "tune sample --jobs sample --t-fwd 60,300 --max-parallel 3,6 --out tune",
    "shockwave": f'replay {_GANG} --jobs "shockwave(n=16, max_hours=1)" --policy shockwave.shockwave --out shockwave',
    "shockwave-rules": f'replay {_GANG} --jobs "shockwave(n=16, max_hours=1)" --policy shockwave.themis --out rules',
    "shockwave-elastic": f'replay {_GANG} --jobs "shockwave(n=16, max_hours=1, elastic=true)" --policy bftrainer '
    "--objective speed-up --out shockwave-elastic",
    **{
        f"elasticflow-{name}": f'replay {_CLUSTER} --jobs "elasticflow(n=40, gap_s=900)" '
        f"--policy elasticflow.{name} --out elasticflow-{name}"
        for name in ("elasticflow", "edf", "chronus", "tiresias", "themis", "gandiva")
    },
    "deadline": 'replay sample --jobs "elasticflow(n=40, gap_s=200)" --curves sample '
    '--policy "bftrainer(admission=true)" --objective deadline --out declined',
    "finish": "finish sample --jobs sample --dedicated 8 --starts 6 --out finish --picture finish.png",
    "finish-json": "finish sample --jobs sample --starts 4 --json",
    "rules": f"compare rules sample --jobs sample --window {_DAY} --out rules",
    "fit": "jobs fit measured.csv -o fitted.toml --picture fit.svg",
    "fit-json": "jobs fit measured.csv --json",
    "describe-picture": "describe sample --picture idle.svg",
    "broken-jobs": "replay sample --jobs broken.csv",
    "broken-sweep": "sweep broken.toml --out broken",
    "broken-campaign": "replay sample --jobs broken-campaign.toml --out broken",
    "solvers": "solvers",
    "solvers-json": "solvers --json",
    "datasets": "datasets list",
    "datasets-info": "datasets info curie",
    "describe": "describe sample",
    "describe-json": "describe sample --json",
    "help": "--help",
    **{f"help-{name.replace(' ', '-')}": f"{name} --help" for name in _HELP},
    "no-such-log": "replay none.parquet --jobs sample",
    "no-such-option-pair": "replay sample --cluster v100=4 --jobs sample",
    "summit": f"replay {_BFTRAINER}/summit-2021-02-node-events.parquet --jobs {_BFTRAINER}/hps-shufflenet-Jbnd-10J.pkl "
    f"--curves {_BFTRAINER}/hps-shufflenet-JNPs-10J.pkl --no-bound --out summit",
    "ingest-swf": f"ingest swf {_LOGS}/SDSC-BLUE-2000-4.2-cln.swf.gz -o swf.parquet",
    "ingest-slurm": f"ingest slurm {_LOGS}/xdmod-phillips-sacct.psv.gz --tz UTC -o slurm.parquet",
    "ingest-pbs": f"ingest pbs {_LOGS}/ncar-casper-pbspro-acct-sample.txt --tz America/Denver -o pbs.parquet",
    "ingest-batsim": f"ingest batsim {_LOGS}/batsim-easy-out_jobs.csv -o batsim.parquet",
    "ingest-cobalt": f"ingest auto {_LOGS}/alcf-mira-cobalt-jobs-3rows.csv -o cobalt.parquet",
    "ingest-table": f"ingest auto {_LOGS}/nrel-eagle-sample1000.csv.gz --tz America/Denver -o table.parquet",
}
READ = {
    "regret": "regret equal bftrainer --effort quick",
    "explain": "explain bftrainer",
    "explain-campaign": "explain campaign",
    "explain-gavel": "explain gavel",
    "explain-job": "explain bftrainer --job image-classifier-00",
    "explain-at": "explain bftrainer --job image-classifier-00 --at +36000",
    "explain-at-auto": "explain auto --job image-classifier-00 --at +36000 --json",
    "explain-json": "explain bftrainer --json",
    "compare": "compare runs equal bftrainer auto --out comparison",
    "compare-gavel": "compare runs gavel packed --out gavel-comparison",
    "compare-campaigns": "compare runs campaign small",
    "export": "export-decision bftrainer --decision 40 --out exported",
    "plot": "plot node-hours bftrainer equal -o node-hours.svg",
    "report": "report bftrainer -o bftrainer.html",
    "report-campaign": "report campaign -o campaign.html",
    "report-gavel": "report gavel -o gavel.html",
    "report-learning": "report learning -o learning.html",
    "report-several": "report bftrainer equal auto -o several.html",
    "replay-ingested": "replay slurm.parquet --jobs sample --out ingested",
    "describe-ingested": "describe swf.parquet",
    "runs": "runs . --html runs.html",
    "runs-json": "runs . --json",
    "plot-all": "plot all bftrainer -o pictures --svg",
    "plot-sweep": "plot sweep sweep --x t_fwd --y samples,u -o sweep.svg",
    "report-finish": "report finish -o finish.html",
    "report-rules": "report rules -o rules.html",
    "report-shockwave": "report shockwave -o shockwave.html",
    "report-elasticflow": "report elasticflow-elasticflow elasticflow-edf -o elasticflow.html",
    "explain-elasticflow": "explain elasticflow-elasticflow",
    "explain-shockwave": "explain shockwave --json",
    "sweep-again": "sweep sweep.toml --out sweep --processes 1",
    "compare-elasticflow": "compare runs elasticflow-elasticflow elasticflow-edf",
    "compare-json": "compare runs equal bftrainer auto --json",
    "not-a-run": "explain pictures-of-nothing",
}
_BEGAN = re.compile(rb'"started": "[^"]*"')
_LOOSE = re.compile(
    r"\b[0-9a-f]{64}\b|\b[0-9a-f]{16}\b|schema_version\W+\d+|/[^\s\"']*(?=/bfreplay/datasets/bundled/)|\bvm:\d+|"
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00"
)
_LEDGER = re.compile(
    r"The ledger closes: .*?record says\.|The ledger closes: .*?one label\.(?: By their .*? written\.)?"
)

# a key that says nothing, and numbers of lines of code
_LEFT_OUT = re.compile(r'\n *(?:"|&#34;)measured(?:"|&#34;): null,|(?<=\.py):\d+')
_NOT_COUNTED = ("schema_version", "sha256", "versions")
_MADE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d|\b\d{16}\b")
_COMPILING = re.compile(r"^(Compiling the inner loops|First use of these loops) .*\n", re.MULTILINE)


def main() -> None:
    """Run both, compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision")
    parser.add_argument("--only", default="", help="commands whose name begins like this, and those that make inputs")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    revision = _git("rev-parse", "--short=12", f"{arguments.revision}^{{commit}}")
    base, here = CACHE / revision, CACHE / "here"
    if not (base / "done").exists():
        tree = CACHE / f"tree-{revision}"
        shutil.rmtree(tree, ignore_errors=True)
        tree.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", revision], cwd=HERE, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive, check=True)
        _run_all(tree, base, "", arguments.workers)
        (base / "done").touch()
    _run_all(HERE, here, arguments.only, arguments.workers)
    names = sorted(path.relative_to(here) for path in here.rglob("*") if path.is_file() and path.name != "done")
    if not arguments.only:
        names = sorted({*names, *(p.relative_to(base) for p in base.rglob("*") if p.is_file() and p.name != "done")})
    expected = tomllib.loads(EXPECTED.read_text(encoding="utf-8")).get("difference", [])
    different = [name for name in names if not _same(base / name, here / name)]
    surprises = [name for name in different if not _is_expected(name, base / name, here / name, expected)]
    for name in (name for name in surprises if (base / name).exists() and (here / name).exists()):
        _show(base / name, here / name)
    alone = Counter(
        (name.parent, "only here" if (here / name).exists() else "only there")
        for name in surprises
        if not ((base / name).exists() and (here / name).exists())
    )
    for (folder, where), number in sorted(alone.items()):
        print(f"{where}: {number} files of {folder}")
    print(
        f"{len(names) - len(different)} of {len(names)} files are the same as at {revision}; "
        f"{len(different) - len(surprises)} differ as {EXPECTED.name} says, {len(surprises)} otherwise"
    )
    sys.exit(bool(surprises))


def _is_expected(name: Path, one: Path, other: Path, expected: list[dict[str, Any]]) -> bool:
    """Return whether the entries of ``expected`` turn ``one`` into ``other``."""
    entries = [entry for entry in expected if fnmatch.fnmatch(str(name), entry["files"])]
    if any(entry.get("gone") for entry in entries):
        return not other.exists()
    if not (one.exists() and other.exists()):
        return False
    if any(entry.get("whole") for entry in entries):
        if name.parts[0] != "printed" or one.read_text().splitlines()[1] != other.read_text().splitlines()[1]:
            sys.exit(f"{EXPECTED.name}: {name}: only printed text with the same exit code may differ as a whole")
        return True
    text = _text(one)
    for entry in entries:
        text = text.replace(entry["old"], entry["new"])
    return text == _text(other)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=HERE, check=True, capture_output=True, text=True).stdout.strip()


def _run_all(tree: Path, folder: Path, only: str, workers: int) -> None:
    """Run every command in ``folder`` with the package of ``tree``."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "printed").mkdir(parents=True)
    still = CACHE / "still"
    still.mkdir(exist_ok=True)
    (still / "sitecustomize.py").write_text(_STILL)
    (folder / "sweep.toml").write_text(_SWEEP.replace('"+0", "+1"', ", ".join(f'"{day}"' for day in _DAY.split())))
    for name, text in _INPUTS.items():
        (folder / name).write_text(text)
    chosen = [
        {name: words for name, words in stage.items() if stage is MAKE or name.startswith(only)}
        for stage in (MAKE, RUN, READ)
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{still}:{tree}",
        "COLUMNS": "100",
        "PYTHONHASHSEED": "0",
        "NO_COLOR": "1",
        "BFREPLAY_COMPILE": "wait",
        "NUMBA_CACHE_DIR": str(CACHE / f"compiled-{tree.name}"),
    }

    def run(name: str, words: str) -> None:
        shell = f'"{sys.executable}" -m bfreplay {words}'
        done = subprocess.run(shell, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        text = f"$ bfreplay {words}\nexit {done.returncode}\n{done.stdout}--- stderr\n{done.stderr}"
        (folder / "printed" / f"{name}.txt").write_text(text.replace(str(folder), "FOLDER").replace(str(tree), "TREE"))

    for stage in chosen:
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(run, stage.keys(), stage.values()))
        for record in sorted(
            folder.glob("**/runs/*/run.json"), key=_text
        ):  # named by their ids, which follow the schema
            target = record.parents[1] / hashlib.sha256(_text(record).encode()).hexdigest()[:12]
            while target.exists() and target != record.parent:
                target = target.with_name(f"{target.name}-again")
            record.parent.rename(target)
        for session in folder.rglob("session.json"):
            session.write_bytes(_BEGAN.sub(b'"started": ""', session.read_bytes()))


def _same(one: Path, other: Path) -> bool:
    if not (one.exists() and other.exists()):
        return False
    return one.read_bytes() == other.read_bytes() or _text(one) == _text(other)


def _text(file: Path) -> str:
    """What counts of a file, as text."""
    if file.suffix == ".parquet":
        table = pq.read_table(file)
        names = sorted(table.column_names)  # their order does not count
        schema = "\n".join(f"{name}: {table.schema.field(name).type}" for name in names)
        text = f"{schema}\n" + "\n".join(map(repr, table.select(names).to_pylist()))
    elif file.suffix == ".json":
        document = json.loads(file.read_bytes())
        if isinstance(document, dict):
            document = {key: value for key, value in document.items() if key not in _NOT_COUNTED}
            if "points" in document:  # of a sweep: runs in the order of their content, not of their ids
                document["runs"] = sorted(json.dumps(each, sort_keys=True) for each in document["runs"].values())
        text = json.dumps(document, indent=1, sort_keys=True)
    else:
        text = file.read_text(encoding="utf-8", errors="replace")
    text = _COMPILING.sub("", _LEFT_OUT.sub("", _LEDGER.sub("", text)))
    if file.stem == "runs":  # the list of runs tells when each was made, and in which folder
        text = _MADE.sub("#", text).replace(f"runs in {file.parents[0].name}", "runs in FOLDER")
    for folder in (file.parents[0], file.parents[1]):
        text = text.replace(str(folder), "FOLDER")
    return _LOOSE.sub("#", text)


def _show(one: Path, other: Path) -> None:
    print(f"differs: {other}")
    if other.suffix == ".png":
        return
    lines = difflib.unified_diff(_text(one).splitlines(), _text(other).splitlines(), lineterm="", n=0)
    for _, line in zip(range(12), lines, strict=False):
        print("   ", line[:220])


if __name__ == "__main__":
    main()
