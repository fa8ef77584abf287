"""Nothing that is opened as data has code imported: run folders, campaigns, job files, sweeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from hashlib import sha256
from pathlib import Path
from shutil import copytree

import pytest
from click.testing import CliRunner

import bfreplay
from bfreplay.cli import main
from bfreplay.errors import InputError
from bfreplay.experiments.sweep import run_sweep
from bfreplay.runs import RunResult
from tests.experiments.sweep.small_sweeps import Inline

WINDOW = ("--window", "2024-07-01T06:00", "2024-07-01T07:00")
REPOSITORY = Path(bfreplay.__file__).resolve().parents[1]
STRANGER = "stranger.inside:thing"
CAMPAIGN = """
[campaign]
trials = 4
{proposer}
[trial]
epochs = 4
samples_per_epoch = 300000
min_nodes = 1
max_nodes = 8
scale_up_cost_s = 20
scale_down_cost_s = 10
curve = "{curve}"
{tables}
"""
SEARCH = "[search.lr]\nlow = 0.1\nhigh = 1.0\n"
POINTS = "0:0 1:500 8:3200"
HOSTILE_CAMPAIGNS = (
    {"tables": f'[scores]\nfunction = "{STRANGER}"'},
    {"tables": f'[pruner]\nkind = "{STRANGER}"'},
    {"proposer": f'proposer = "{STRANGER}"'},
    {"tables": f'{SEARCH}[optuna]\nsampler = "{STRANGER}"'},
    {"tables": f'{SEARCH}[optuna]\npruner = "{STRANGER}"'},
    {"curve": f"{STRANGER}(rate_1=1)"},
    {"curve": "net", "tables": f'[curves.net]\nlaw = "{STRANGER}"\nrate_1 = 1'},
)
# what each command line imported of no package that is installed, how it ended, and what it said
RUNNER = """
import json, sys
from pathlib import Path
from click.testing import CliRunner
from bfreplay.cli import main


def outcome(command, roots):
    before = set(sys.modules)
    result = CliRunner().invoke(main, command)
    files = [getattr(module, "__file__", None) for name, module in list(sys.modules.items()) if name not in before]
    outside = [file for file in files if file and not any(Path(file).is_relative_to(root) for root in roots)]
    return outside, result.exit_code, result.output + repr(result.exception)


if __name__ == "__main__":
    commands, roots = json.load(sys.stdin)
    print(json.dumps([outcome(command, roots) for command in commands]))
"""


def campaign(**changes):
    return CAMPAIGN.format(**{"proposer": "", "curve": POINTS, "tables": "", **changes})


def go(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def made(*words):
    result = go(*words)
    assert result.exit_code == 0, result.output


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """One result folder of every kind, and a run of a campaign."""
    home = tmp_path_factory.mktemp("results")
    (home / "campaign.toml").write_text(campaign())
    made("replay", "sample", "--jobs", "sample", *WINDOW, "--unlimited-work", "--quiet", "--out", home / "run")
    made("replay", "sample", "--jobs", home / "campaign.toml", *WINDOW, "--quiet", "--out", home / "of-campaign")
    made("compare", "runs", home / "run", home / "run", "--no-pictures", "--out", home / "comparison")
    lab = ("--sample", 1, "--formulations", "choices", "--backends", "cbc", "--no-pictures", "--quiet")
    made("compare", "formulations", "sample", "--jobs", "sample", *WINDOW, *lab, "--out", home / "lab")
    grid = ("--t-fwd", "60", "--max-parallel", "5", "--processes", 1, "--quiet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_sweep, "ProcessExecutor", Inline)
        made("tune", "sample", "--jobs", "sample", *WINDOW, *grid, "--out", home / "tuning")
    return home


@pytest.fixture
def hostile(tmp_path):
    """A folder on the search path whose modules leave a mark when they are imported."""
    (tmp_path / "path" / "stranger").mkdir(parents=True)
    leave_a_mark = f"open({str(tmp_path / 'mark')!r}, 'a').write(__name__ + chr(10))\n"
    for file in ("stranger/__init__.py", "stranger/inside.py"):
        (tmp_path / "path" / file).write_text(leave_a_mark)
    return tmp_path


def invoked(commands, hostile, cwd=None):
    """What became of command lines, in one process of their own that finds the hostile modules."""
    roots = [
        sys.prefix,
        sys.base_prefix,
        sysconfig.get_path("purelib"),
        str(REPOSITORY / "bfreplay"),
        str(hostile / "runner"),
    ]
    # a file elsewhere, as the command is: its folder is on the search path, and the working directory is not
    runner = hostile / "runner" / "runner.py"
    runner.parent.mkdir(exist_ok=True)
    runner.write_text(RUNNER)
    done = subprocess.run(
        [sys.executable, runner],
        text=True,
        capture_output=True,
        cwd=cwd or hostile,
        check=False,
        input=json.dumps(([[str(word) for word in command] for command in commands], roots)),
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(hostile / "path")])},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused_nothing_imported(commands, hostile):
    """The outcomes, after making sure that no command imported what is not installed."""
    report = invoked(commands, hostile)
    assert len(report) == len(commands)
    assert [outside for outside, _, _ in report if outside] == []
    assert not (hostile / "mark").exists()
    return [(code, output) for _, code, output in report]


def of_a_run(run, out):
    job = RunResult.load(run).table("jobs")["job"][0].as_py()
    return [
        ("explain", run, "--quiet"),
        ("explain", run, "--job", job, "--quiet"),
        ("explain", run, "--job", job, "--at", "+600", "--quiet"),
        ("regret", run, "--evaluations", 3, "--quiet"),
        ("export-decision", run, "--decision", 1, "--out", out / "exported", "--force", "--quiet"),
        ("report", run, "-o", out / "page.html", "--force"),
        ("plot", "timeline", run, "-o", out / "timeline.png", "--force"),
        ("compare", "runs", run, run, "--no-pictures"),
    ]


def edited(folder, file, change):
    document = json.loads((folder / file).read_text())
    change(document)
    (folder / file).write_text(json.dumps(document))
    if file == "run.json":  # checksums are no signatures: whoever edits a record can write a new one
        digest = sha256((folder / file).read_bytes()).hexdigest()
        edited(folder, "session.json", lambda session: session["sha256"].update({file: digest}))


def leaves(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield from leaves(each, (*path, key))
    if isinstance(value, str):
        yield path


def put(document, path, value):
    for key in path[:-1]:
        document = document[key]
    document[path[-1]] = value


def test_the_hostile_modules_would_be_imported_if_the_user_said_so(folders, hostile):
    run = folders / "run"
    at = ("--job", "image-classifier-05", "--at", "+600", "--quiet")
    ((outside, code, output),) = invoked([("explain", run, *at, "--objective", STRANGER)], hostile)
    assert code == 2, output
    assert "has no attribute 'thing'" in output
    assert len(outside) == 2
    assert (hostile / "mark").read_text().split() == ["stranger", "stranger.inside"]


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.thorough) for first in range(1, 8))])
def test_no_text_of_a_run_s_documents_is_imported_by_any_command(folders, hostile, first):
    """Every eighth text of a document, and in `make test-all` those between them too."""
    run = folders / "run"
    commands = []
    for document in ("run.json", "session.json"):
        found = leaves(json.loads((run / document).read_text()))
        for number, path in enumerate([path for path in found if path[0] not in ("versions", "tables")][first::8]):
            copy = copytree(run, hostile / f"{document}-{number}")
            edited(copy, document, lambda found, path=path: put(found, path, STRANGER))
            commands += [[copy if word == run else word for word in each] for each in of_a_run(run, hostile)]
    assert len(commands) >= 16  # eight of each text
    outcomes = refused_nothing_imported(commands, hostile)
    assert {code for code, _ in outcomes} <= {0, 2, 3}


def test_what_only_a_run_s_session_names_is_refused_with_what_to_do(folders, hostile):
    """A class; and a job file with other content, which is not even read as jobs."""
    copy, other = (copytree(folders / "run", hostile / name) for name in ("run", "other"))
    edited(copy, "session.json", lambda session: session["files"].update(jobs=STRANGER))
    (hostile / "jobs.toml").write_text("this is no TOML")
    edited(other, "session.json", lambda session: session["files"].update(jobs=str(hostile / "jobs.toml")))
    explain_other = ("explain", other, "--job", "image-classifier-05", "--quiet", "--allow-code")
    *outcomes, (code, said) = refused_nothing_imported([*of_a_run(copy, hostile), explain_other], hostile)
    assert [code for code, _ in outcomes] == [0, 2, 2, 2, 2, 0, 0, 0]
    for _, output in outcomes[1:5]:  # explain --job, explain --at, regret, export-decision
        assert f"file:     {copy / 'session.json'}" in output
        assert "row:      files" in output
        assert "key:      jobs" in output
        assert STRANGER in output
        assert "--allow-code" in output
    assert code == 2
    assert "the jobs are not those of the run: their content differs" in said
    assert f"value:    {sha256(b'this is no TOML').hexdigest()!r}" in said


@pytest.mark.slow
def test_an_objective_that_only_a_run_names_is_refused_by_name_and_taken_from_the_user(folders, hostile, monkeypatch):
    (hostile / "of_a_run.py").write_text("def worth(state, counts):\n    return state.throughput * 2.0\n")
    monkeypatch.chdir(hostile)
    run, other = hostile / "run", ("--decision", 1, "--out", hostile / "out", "--quiet", "--force")
    made("replay", "sample", "--jobs", "sample", *WINDOW, "--objective", "of_a_run:worth", "--quiet", "--out", run)
    commands = [
        ("export-decision", run, *other),
        ("export-decision", run, *other, "--objective", "throughput"),
        ("export-decision", run, *other, "--objective", "of_a_run:worth"),
        ("export-decision", run, *other, "--allow-code"),
    ]
    report = invoked(commands, hostile)
    assert [(len(outside), code) for outside, code, _ in report] == [(0, 2), (0, 2), (1, 0), (0, 0)]
    assert f"file:     {run / 'run.json'}" in report[0][2]
    assert "key:      spec" in report[0][2]
    assert "the objective is not that of the run" in report[1][2]


@pytest.mark.slow
def test_code_that_a_campaign_names_is_refused_in_a_run_and_on_the_command_line(folders, hostile):
    commands, files = [], []
    for number, changes in enumerate(HOSTILE_CAMPAIGNS):
        file = hostile / f"campaign-{number}.toml"
        file.write_text(campaign(**changes))
        copy = copytree(folders / "of-campaign", hostile / f"run-{number}")
        digest = sha256(file.read_bytes()).hexdigest()
        edited(copy, "session.json", lambda session, file=file: session["files"].update(jobs=str(file)))
        edited(copy, "run.json", lambda run, digest=digest: run["inputs"]["jobs"]["files"][0].update(sha256=digest))
        spec = hostile / f"sweep-{number}.toml"
        spec.write_text(f'[run]\nevents = "sample"\njobs = "{file}"\nwindow = {json.dumps(WINDOW[1:])}\n')
        campaigns = ("--jobs", file, *WINDOW, "--quiet")
        more = [
            *(each for each in of_a_run(copy, hostile)[1:] if each[0] in ("explain", "export-decision")),
            ("replay", "sample", *campaigns),
            ("tune", "sample", *campaigns, "--own-work", "--processes", 1),
            ("compare", "formulations", "sample", *campaigns),
            ("sweep", spec, "--out", hostile / "sweep", "--processes", 1),
        ]
        commands += more
        files += [file] * len(more)
    assert len(commands) == 7 * len(HOSTILE_CAMPAIGNS)
    for (code, output), file in zip(refused_nothing_imported(commands, hostile), files, strict=True):
        assert code == 2, output
        assert f"file:     {file}" in output
        assert STRANGER in output
        assert "--allow-code" in output


@pytest.mark.slow
def test_a_sweep_s_spec_names_no_code_and_gives_itself_no_leave(hostile):
    """Nor does a text of a policy in it import the package that it looks like."""
    options, commands = ("policy", "objective", "solver", "formulation", "jobs", "allow-code"), []
    for option in options:
        given = {"events": "sample", "jobs": "sample", "solver": "cbc", option: STRANGER}
        given |= {"allow-code": True} if option == "allow-code" else {}
        text = "\n".join(f"{name} = {json.dumps(value)}" for name, value in given.items())
        (hostile / f"{option}.toml").write_text(f"[run]\n{text}\n")
        commands.append(("sweep", hostile / f"{option}.toml", "--out", hostile / "sweep", "--dry-run"))
    (hostile / "c.toml").write_text(campaign(proposer=f'name = "{STRANGER}"'))
    (hostile / "sweep.toml").write_text(
        f'[run]\nevents = "sample"\njobs = "c.toml"\nwindow = {json.dumps(WINDOW[1:])}\n'
    )
    commands.append(("sweep", hostile / "sweep.toml", "--out", hostile / "sweep", "--processes", 1, "--quiet"))
    *outcomes, (code, output) = refused_nothing_imported(commands, hostile)
    assert code == 0, output
    for option, (code, output) in zip(options, outcomes, strict=True):
        assert code == 2
        assert ("a run has no key" if option == "allow-code" else "is code that only a file names") in output
        assert f"key:      {option}" in output


@pytest.mark.slow
@pytest.mark.parametrize("drawn", [18, pytest.param(1, marks=pytest.mark.thorough)])
def test_records_of_sweeps_labs_tunings_and_comparisons_name_no_code(folders, hostile, drawn):
    """Whatever text of a document is changed, it is read; every eighteenth such folder, or each, is drawn too."""
    script = hostile / "opens.py"
    script.write_text(
        "import sys\n"
        "from bfreplay.result_folders.lab import LabResult\n"
        "from bfreplay.result_folders.comparison import RunComparison\n"
        "from bfreplay.experiments.sweep import SweepResult\n"
        "from bfreplay.result_folders.tuning import Tuning\n"
        "from bfreplay.report import draw_comparison, draw_lab, draw_tuning\n"
        "for number, (kind, folder) in enumerate(zip(sys.argv[2::2], sys.argv[3::2])):\n"
        "    reads = {'lab': (LabResult.load, draw_lab), 'comparison': (RunComparison.load, draw_comparison),\n"
        "             'tuning': (Tuning.load, draw_tuning), 'sweep': (SweepResult.load,)}[kind]\n"
        "    for read in reads[:1] if number % int(sys.argv[1]) else reads:\n"
        "        try:\n"
        "            read(folder)\n"
        "        except Exception as error:\n"
        "            print(kind, type(error).__name__)\n"
    )
    words = []
    for kind, place in (("lab", "lab"), ("comparison", "comparison"), ("tuning", "tuning"), ("sweep", "tuning/sweep")):
        for number, path in enumerate(leaves(json.loads((folders / place / f"{kind}.json").read_text()))):
            copy = copytree(folders / place, hostile / f"{kind}-{number}")
            edited(copy, f"{kind}.json", lambda found, path=path: put(found, path, STRANGER))
            words += [kind, str(copy)]
    assert {"lab", "comparison", "tuning", "sweep"} <= set(words)
    path = os.pathsep.join([str(REPOSITORY), str(hostile / "path")])
    subprocess.run([sys.executable, script, str(drawn), *words], env={**os.environ, "PYTHONPATH": path}, check=True)
    assert not (hostile / "mark").exists()


@pytest.mark.slow
def test_a_foreign_working_directory_is_searched_for_nothing_but_what_the_user_names(folders, hostile):
    here = copytree(folders / "run", hostile / "here")
    leave_a_mark = f"open({str(hostile / 'mark')!r}, 'a').write(__name__ + chr(10))\nraise ImportError('hostile')\n"
    for module in ("numexpr", "bottleneck", "signal", "pickle", "tempfile", "sitecustomize", "evil", "mip", "pebble"):
        (here / f"{module}.py").write_text(leave_a_mark)
    (here / "evil-1.dist-info").mkdir()
    (here / "evil-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    groups = ("run_figures", "log_readers", "curves", "policies", "backends", "formulations")
    points = "".join(f"[bfreplay.{group}]\nevil = evil:THING\n" for group in groups)
    (here / "evil-1.dist-info" / "entry_points.txt").write_text(points)
    (here / "sweep.toml").write_text(
        f'[run]\nevents = "sample"\njobs = "sample"\nwindow = {json.dumps(WINDOW[1:])}\n[vary]\nt-fwd = [60, 120]\n'
    )
    commands = [
        ("report", ".", "-o", "page.html"),
        ("plot", "all", ".", "-o", hostile / "pictures"),
        ("solvers",),
        ("replay", "sample", "--jobs", "sample", *WINDOW, "--solver", "cbc", "--quiet"),
        ("sweep", "sweep.toml", "--out", hostile / "sweep", "--processes", 1, "--quiet"),
    ]
    report = invoked(commands, hostile, cwd=here)
    assert [(outside, code) for outside, code, _ in report] == [([], 0)] * len(commands), report
    assert not (hostile / "mark").exists()
    assert "evil" not in report[2][2]


def test_python_callers_give_leave_by_name(hostile, monkeypatch):
    (hostile / "trials.py").write_text("def score(number, params, epoch):\n    return number * epoch\n")
    monkeypatch.syspath_prepend(hostile)
    (hostile / "c.toml").write_text(campaign(tables='[scores]\nfunction = "trials:score"'))
    with pytest.raises(InputError, match="is code that only a file names") as caught:
        bfreplay.load_campaign(hostile / "c.toml")
    assert (caught.value.row, caught.value.column) == ("[scores]", "function")
    assert bfreplay.load_campaign(hostile / "c.toml", allow_code=True).campaign.trials == 4
    options = {"events": "sample", "jobs": str(hostile / "c.toml"), "window": WINDOW[1:], "efficiency": False}
    with pytest.raises(InputError, match="is code that only a file names"):
        bfreplay.RunOptions(**options).prepare()
    bfreplay.RunOptions(**options, allow_code=True).prepare().policy.close()
