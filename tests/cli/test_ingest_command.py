import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager

import pytest
from click.testing import CliRunner

import bfreplay
from bfreplay.cli import main
from bfreplay.datasets.batch_jobs import load_batch_jobs
from tests.conftest import REPOSITORY

SACCT = """JobIDRaw|State|Start|End|Elapsed|NNodes|NodeList
1|COMPLETED|2024-05-01T00:00:00|2024-05-01T01:00:00|01:00:00|2|cn[1-2]
2|COMPLETED|2024-05-01T00:30:00|2024-05-01T02:00:00|01:30:00|1|cn3
3|CANCELLED by 7|Unknown|Unknown|00:00:00|4|None assigned
4|COMPLETED|2024-05-01T01:30:00|2024-05-01T03:00:00|01:30:00|2|cn[1-2]
"""
SWF = """; MaxNodes: 4
; MaxProcs: 4
; UnixStartTime: 1700000000
1 0 0 600 3 -1 -1 3 -1 -1 1 1 1 -1 1 1 -1 -1
2 300 0 600 1 -1 -1 1 -1 -1 1 1 1 -1 1 1 -1 -1
3 2000 0 600 2 -1 -1 2 -1 -1 1 1 1 -1 1 1 -1 -1
4 2100 0 900 -1 -1 -1 -1 -1 -1 0 1 1 -1 1 1 -1 -1
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.psv").write_text(SACCT)
    (tmp_path / "log.swf").write_text(SWF)
    rows = [line.rpartition("|")[0] for line in SACCT.splitlines() if "cn3" not in line]
    (tmp_path / "counts.psv").write_text("\n".join(rows))
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(main, ["ingest", *arguments])


def test_a_log_goes_in_and_its_events_are_described(folder):
    result = run("slurm", "jobs.psv", "--tz", "UTC", "--full-window", "-o", "events.parquet")
    assert result.exit_code == 0, result.output
    log = bfreplay.load_events(folder / "events.parquet")
    assert log.nodes == ("cn1", "cn2", "cn3")
    assert (log.window_end_us - log.window_start_us) == 3 * 3600 * 10**6
    assert log.metadata.skipped == {"never started": 1}
    assert log.metadata.notes["ingest"]["rows_read"] == 4
    # idle: cn1 and cn2 from 1:00 to 1:30, cn3 from 0:00 to 0:30 and from 2:00 to 3:00
    described = CliRunner().invoke(main, ["describe", "events.parquet", "--json"])
    assert json.loads(described.output)["idle_node_hours"] == pytest.approx(2.5)
    for words in ("4 rows", "3 job intervals", "1 x never started", "next", "bfreplay describe events.parquet"):
        assert words in result.output


@pytest.mark.parametrize(
    ("is_interpreted", "words"),
    [(True, "interpreted now, and compiled in the background"), (False, "compiling them, once")],
)
def test_the_first_use_of_loops_is_announced_where_stderr_is_no_terminal_and_not_to_who_wants_quiet(
    folder, monkeypatch, is_interpreted, words
):
    @contextmanager
    def first_use(show):
        show(is_interpreted)
        yield

    monkeypatch.setattr("bfreplay._compiling.notice_of_compiling", first_use)
    assert words in run("swf", "log.swf").stderr
    assert "First use" not in run("swf", "log.swf", "--quiet").stderr


def test_without_out_the_report_says_that_nothing_was_written_and_how_to_write(folder):
    assert "nothing was written: -o FILE writes the events" in run("swf", "log.swf").stdout
    assert "nothing was written" not in run("swf", "log.swf", "-o", "a.parquet").stdout


def test_an_estimated_window_that_leaves_out_most_of_the_log_is_a_warning(folder):
    rows = ["JobIDRaw|State|Start|End|NNodes|NodeList"]
    rows += [f"1|COMPLETED|2024-05-01T00:00:00|2024-05-01T{hour}:00:00|1|cn{hour}" for hour in (10, 22)]
    rows += ["2|COMPLETED|2024-05-01T11:00:00|2024-05-01T12:00:00|1|cn10"]
    (folder / "short.psv").write_text("\n".join(rows))
    cut = run("slurm", "short.psv", "--tz", "UTC").stdout
    assert "WARNING     1 x the estimated window leaves out most of the log (--full-window keeps the whole log)" in cut
    assert "leaves out" not in run("slurm", "short.psv", "--tz", "UTC", "--full-window").stdout


def test_the_reader_is_recognised_and_says_why(folder):
    result = run("auto", "log.swf", "--json")
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["facts"]["recognised"][0].startswith("log.swf: swf, because")
    assert report["metadata"]["allocator"] == {"name": "lowest-id", "seed": None}
    assert report["rows_read"] == 4


def test_the_rule_of_assignment_is_in_every_result(folder):
    assert run("swf", "log.swf", "-o", "events.csv", "--assignment", "random", "--seed", "3").exit_code == 0
    described = CliRunner().invoke(main, ["describe", "events.csv"])
    assert "random" in described.output
    jobs = folder / "jobs.csv"
    jobs.write_text(
        "name,min_nodes,max_nodes,scale_up_cost_s,scale_down_cost_s,work_samples,curve\na,1,2,1,1,inf,0:0 1:10 2:18\n"
    )
    replayed = CliRunner().invoke(main, ["replay", "events.csv", "--jobs", "jobs.csv", "--out", "run", "--quiet"])
    assert replayed.exit_code == 0, replayed.output
    assert "simulated (random, seed 3)" in replayed.output
    record = json.loads((folder / "run" / "run.json").read_text())
    assert record["inputs"]["events"]["metadata"]["allocator"] == {"name": "random", "seed": 3}


def test_all_rules_are_compared_and_written(folder):
    result = run("swf", "log.swf", "-o", "events.parquet", "--assignment", "all")
    assert result.exit_code == 0, result.output
    names = sorted(path.name for path in folder.glob("events.*.parquet"))
    assert names == [
        "events.least-recently-used.parquet",
        "events.lowest-id.parquet",
        "events.most-recently-used.parquet",
        "events.random.parquet",
    ]
    assert "the same log under each rule" in result.output
    assert len({line.split()[-6] for line in result.output.splitlines() if line.startswith(("lowest", "random"))}) == 1


def test_there_is_nothing_to_compare_where_nodes_are_known(folder):
    result = run("slurm", "jobs.psv", "--tz", "UTC", "--assignment", "all")
    assert result.exit_code == 2
    assert "nothing to compare" in result.output


def test_warnings_are_errors_under_strict_and_nothing_is_written(folder):
    (folder / "jobs.psv").write_text(SACCT + "5|COMPLETED|yesterday|2024-05-01T03:00:00|00:10:00|1|cn1\n")
    assert run("slurm", "jobs.psv", "--tz", "UTC").exit_code == 0
    result = run("slurm", "jobs.psv", "--tz", "UTC", "--strict", "-o", "events.parquet")
    assert result.exit_code == 2
    assert "--strict" in result.output
    assert not (folder / "events.parquet").exists()


def test_a_local_log_needs_its_zone(folder):
    result = run("slurm", "jobs.psv")
    assert result.exit_code == 2
    assert "--tz" in result.output
    assert "sacct" in result.output  # the command that exports in UTC


def test_an_output_that_is_there_is_kept(folder):
    (folder / "events.parquet").write_text("precious")
    result = run("swf", "log.swf", "-o", "events.parquet")
    assert result.exit_code == 2
    assert (folder / "events.parquet").read_text() == "precious"
    assert run("swf", "log.swf", "-o", "events.parquet", "--force").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["slurn", "jobs.psv"], "did you mean 'slurm'"),
        (["swf", "absent.swf"], "no such file"),
        (["swf", "log.swf", "-o", "events.txt"], "a name ending in .parquet"),
        (["swf", "log.swf", "--map", "start"], "ROLE=COLUMN"),
        (["swf", "log.swf", "--window", "2023-01-01", "soon"], "--window"),
        (["swf", "log.swf", "--window", "01.07.2024", "02.07.2024"], "2024-07-01T08:00"),
        (["slurm", "counts.psv", "--tz", "UTC"], "the column NodeList is missing"),
        (["swf", "log.swf", "--window", "2021-01-01", "2021-02-01"], "outside the log"),
        (["swf", "log.swf", "--full-window", "--window", "1", "2"], "cannot both be"),
        (["swf", "log.swf", "--min-gap", "-1"], "min_gap_s is out of range"),
        (["slurm", "jobs.psv", "--tz", "Paris"], "unknown time zone"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(folder, arguments, words):
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert words in result.output
    assert [path.name for path in folder.iterdir() if path.name not in ("jobs.psv", "log.swf", "counts.psv")] == []


def test_the_same_input_gives_the_same_bytes_wherever_it_lies(folder):
    other = folder / "elsewhere"
    other.mkdir()
    (other / "log.swf").write_text(SWF)
    assert run("swf", "log.swf", "-o", "a.parquet").exit_code == 0
    assert run("swf", str(other / "log.swf"), "-o", "b.parquet").exit_code == 0
    assert (folder / "a.parquet").read_bytes() == (folder / "b.parquet").read_bytes()


def test_a_reader_of_ones_own_is_used(folder):
    (folder / "my_reader.py").write_text(
        "class Mine:\n"
        "    name, title, exports = 'mine', 'mine', ()\n"
        "    def recognise(self, file):\n"
        "        return None\n"
        "    def read(self, files, record, options):\n"
        "        record.add_format('mine')\n"
        "        for number, line in files[0].lines():\n"
        "            record.report.read()\n"
        "            job, start, end, node = line.split()\n"
        "            nodes = record.node_ids([node])\n"
        "            times = int(start) * 10**6, int(end) * 10**6\n"
        "            record.add_job(job, *times, nodes, file=files[0].name, line=number)\n"
    )
    (folder / "log.txt").write_text("1 0 100 a\n2 50 200 b\n3 150 300 a\n")
    result = run("my_reader:Mine", "log.txt", "--full-window", "-o", "events.csv")
    assert result.exit_code == 0, result.output
    assert bfreplay.load_events(folder / "events.csv").nodes == ("a", "b")


def test_how_to_get_a_log_is_told_without_a_log(folder):
    result = run("slurm", "--how")
    assert result.exit_code == 0
    assert "TZ=UTC sacct" in result.output
    assert "sacctmgr" in result.output
    everything = run("auto", "--how").output
    for word in ("sacct", "pbs_home", "lsb.acct", "flux jobs", "batsim", "duckdb"):
        assert word in everything.lower()


def test_no_file_is_an_error(folder):
    result = run("slurm")
    assert result.exit_code == 2
    assert "no file to read" in result.output


def test_a_log_of_events_is_not_a_scheduler_s_log(folder):
    (folder / "events.csv").write_text("time,node,idle\n0,a,true\n9,a,false\n")
    for file in ("events.csv", bfreplay.sample_events_path()):
        result = run("auto", str(file))
        assert result.exit_code == 2
        assert "a log of node events already" in result.output


def test_a_published_matrix_is_not_a_scheduler_s_log(shared, folder):
    result = run("auto", str(shared / "data/bftrainer/ndstat-10sdn6-evt.tar.gz"))
    assert result.exit_code == 2
    assert "a log of node events already" in result.output


SPOOL_TO_DISK = """
import os, resource, signal, sys
from bfreplay.datasets.ingest.occupancy import spool
spool.JobSpool.__init__.__defaults__ = (2, 16)  # a run on disk is full with two rows
end_run = spool.JobSpool._end_run
def then(self):
    {before}
    end_run(self)
    {after}
spool.JobSpool._end_run = then
from bfreplay.cli import main
from bfreplay.datasets.batch_jobs import load_batch_jobs
main(["ingest", "swf", "jobs.swf", "-o", "out.parquet"])
"""


def ingest_that_spools(folder, before="pass", after="pass"):
    """``bfreplay ingest`` of four jobs, disturbed before or after the first of them are put on disk."""
    rows = [f"{n} {100 * n} 0 50 1 -1 -1 1 60 -1 1 1 1 -1 1 -1 -1 -1" for n in range(1, 5)]
    (folder / "jobs.swf").write_text("\n".join(["; UnixStartTime: 1700000000", "; MaxNodes: 2", *rows, ""]))
    (folder / "tmp").mkdir()
    return subprocess.run(
        [sys.executable, "-c", SPOOL_TO_DISK.format(before=before, after=after)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "TMPDIR": str(folder / "tmp")},
    )


def test_ctrl_c_ends_an_import_without_a_traceback_and_leaves_nothing(tmp_path):
    done = ingest_that_spools(tmp_path, after="os.kill(os.getpid(), signal.SIGINT)")
    assert (done.returncode, done.stderr) == (130, "Aborted.\n")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["jobs.swf", "tmp"]


def test_a_full_disk_in_the_middle_of_an_import_is_told_with_the_file_and_leaves_nothing(tmp_path):
    limit = "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9))"
    done = ingest_that_spools(tmp_path, before=limit)
    assert done.returncode == 3
    assert re.fullmatch(r"Error: .*\n  file:     .*/tmp/\.bfreplay-ingest\..*/run-0\.rows\n", done.stderr), done.stderr
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["jobs.swf", "tmp"]


def test_names_of_nodes_are_made_one_in_jobs_outages_and_inventory(folder):
    (folder / "jobs.psv").write_text(SACCT.replace("cn3", "CN3.hpc"))
    (folder / "nodes.txt").write_text("cn1\nCN2\ncn3\ncn4.hpc\n")
    (folder / "down.csv").write_text("node,start,end,state\ncn4,2024-05-01T00:00:00,2024-05-01T03:00:00,down\n")
    options = ("--tz", "UTC", "--full-window", "--inventory", "nodes.txt", "--outages", "down.csv", "--json")
    as_it_is = json.loads(run("slurm", "jobs.psv", *options).stdout)
    assert as_it_is["facts"]["nodes"] == 7
    assert any("differ in their domain" in sentence for sentence in as_it_is["warnings"])
    report = json.loads(run("slurm", "jobs.psv", *options, "--node-names", "short-lower").stdout)
    assert report["facts"]["nodes"] == 4
    assert report["facts"]["node_hours"] == {"idle": 2.5, "busy": 6.5, "down": 3.0}
    assert not report["warnings"]


def test_the_inventory_may_be_all_that_is_wanted(folder):
    (folder / "nodes.txt").write_text("cn1\ncn3\n")
    options = ("--tz", "UTC", "--full-window", "--inventory-only", "--json")
    report = json.loads(run("slurm", "jobs.psv", *options, "--inventory", "nodes.txt").stdout)
    assert report["facts"]["nodes"] == 2
    assert report["facts"]["node_hours"] == {"idle": 2.0, "busy": 4.0}
    assert report["facts"]["nodes skipped"].endswith("such as cn2: 2 uses by jobs not counted")
    refused = run("slurm", "jobs.psv", *options)
    assert refused.exit_code == 2
    assert "give --inventory FILE" in refused.output


def test_a_zone_that_changes_nothing_is_said_to(folder):
    assert "--tz: has no effect on this log" in " ".join(run("swf", "log.swf", "--tz", "Europe/Paris").output.split())
    assert "--tz:" not in run("swf", "log.swf").output
    assert "--tz:" not in run("slurm", "jobs.psv", "--tz", "Europe/Paris").output


def test_batch_jobs_are_written_beside_the_same_events(folder):
    assert run("slurm", "jobs.psv", "--tz", "UTC", "--full-window", "-o", "plain.parquet").exit_code == 0
    options = ("--full-window", "-o", "events.parquet", "--batch-jobs", "batch_jobs.parquet")
    result = run("slurm", "jobs.psv", "--tz", "UTC", *options)
    assert result.exit_code == 0, result.output
    assert "wrote batch_jobs.parquet" in result.output
    assert (folder / "plain.parquet").read_bytes() == (folder / "events.parquet").read_bytes()
    jobs = load_batch_jobs(folder / "batch_jobs.parquet", bfreplay.load_events(folder / "events.parquet"))
    assert [str(name) for name in jobs.job] == ["1", "2", "4"]
    assert jobs.n_nodes.tolist() == [2, 1, 2]
    assert run("slurm", "jobs.psv", "--tz", "UTC", *options, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--batch-jobs", "b.parquet"], "needs a file of events"),
        (["-o", "b.parquet", "--batch-jobs", "b.parquet"], "needs a file of events"),
        (["-o", "e.parquet", "--batch-jobs", "b.csv"], "a name ending in .parquet"),
        (["-o", "e.parquet", "--batch-jobs", "there.parquet"], "exists already"),
        (["-o", "e.parquet", "--batch-jobs", "b.parquet", "--assignment", "all"], "of one log"),
    ],
)
def test_batch_jobs_that_cannot_be_written_are_refused_before_anything_is(folder, arguments, words):
    (folder / "there.parquet").write_text("precious")
    before = sorted(folder.iterdir())
    result = run("swf", "log.swf", *arguments)
    assert result.exit_code == 2
    assert words in result.output
    assert sorted(folder.iterdir()) == before
    assert (folder / "there.parquet").read_text() == "precious"
