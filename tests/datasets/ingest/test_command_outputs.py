"""Outputs of scheduler commands that are no log: named by ``auto``, with the command to run instead."""

import json
import shlex

import pytest

from bfreplay.datasets.ingest.catalogue import _JSON, _TEXTS, BY_TABLE, READERS, command_output, find_reader
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.read_log import ingest, read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.table.table_jobs import ENDS_BY_ELAPSED
from bfreplay.errors import InputError
from tests.datasets.ingest.what_was_read import intervals

DASHES = "------------ -------- --------------- ----------"
OUTPUTS = {  # text -> part of its name, part of the fix
    f"JobID          NNodes        NodeList      State\n{DASHES}\n811 2 f[1-2] COMPLETED": ("sacct", "-P -S"),
    f"   Cluster        NodeName           TimeStart      State\n{DASHES}\nc n1 x DOWN": ("show event", "show event"),
    f"      Name           TimeStart             TimeEnd\n{DASHES}\npm x y": ("show reservation", "show reservation"),
    "NodeName=n1 Arch=x86_64 CoresPerSocket=16\n   CPUAlloc=0": ("scontrol show node", "scontrol show node -o >"),
    "ReservationName=pm StartTime=2024-06-01T12:00:00": ("scontrol show reservation", "sacctmgr -P show reservation"),
    "JobId=811 JobName=a\n   UserId=u(1)": ("scontrol show job", "sacct -a"),
    "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n": ("squeue", "sacct -a"),
    "JOBID|PARTITION|NAME\n1|p|x": ("squeue", "sacct -a"),
    "PARTITION AVAIL  TIMELIMIT  NODES  STATE NODELIST\nall*  up  infinite  2 idle n[1-2]": ("sinfo", "while sleep"),
    "Fri Nov 27 09:00:00 2026\nNODELIST   NODES PARTITION       STATE CPUS\nn1 1 all idle 4": ("sinfo", "while sleep"),
    "REASON               USER      TIMESTAMP           NODELIST\nbad root x n1": ("sinfo -R", "show event"),
    "1700000000:ar_log:1\n1700000000:acct:all.q:n1:g:u": ("Grid Engine's reporting", "tar czf - accounting*"),
    "=" * 62 + "\nqname        all.q\nhostname     n1\n": ("qacct", "tar czf - accounting*"),
    "HOSTNAME                ARCH         NCPU NSOC NCOR NTHR  LOAD\n" + "-" * 60: ("qhost", "tar czf - accounting*"),
    "job-ID  prior   name       user         state\n" + "-" * 60: ("qstat of Grid Engine", "tar czf - accounting*"),
    "n1\n     Mom = n1.example\n     ntype = PBS\n     state = free\n": ("pbsnodes", "pbsnodes -a >"),
    "n1\n     state = free\n     np = 4\n": ("pbsnodes", "pbsnodes -a >"),
    "Job id            Name             User              Time Use S Queue\n": ("qstat of PBS", "tar"),
    "Job Id: 12.server\n    Job_Name = a": ("qstat of PBS", "tar"),
    "Summary of time in seconds spent in various states:\nJOBID   USER    JOB_NAME  PEND": ("bhist", "lsb"),
    "\nJob <101>, User <ann>, Project <default>, Command <a>": ("bhist", "lsb"),
    "JOBID   USER    STAT  QUEUE      FROM_HOST   EXEC_HOST": ("bjobs", "lsb"),
    "HOST_NAME          STATUS       JL/U    MAX  NJOBS": ("bhosts", "lsb"),
    "       JOBID USER     NAME       ST NTASKS NNODES     TIME INFO": ("flux jobs", "flux jobs"),
    "     STATE NNODES   NCORES    NGPUS NODELIST": ("flux resource list", "flux resource"),
    "ClusterId\tProcId\tJobStatus\tLastRemoteHost\n1\t0\t4\tslot1@a": ("condor_history", "nodes=LastRemoteHost"),
    "-- Schedd: x : <1.2.3.4>\nOWNER BATCH_NAME      SUBMITTED   DONE": ("condor_q", "nodes=LastRemoteHost"),
}
DOCUMENTS = [
    ({"nodes": [{"name": "t1", "state": ["IDLE"]}], "last_update": 1}, "sinfo --json", "scontrol show node -o >"),
    ({"meta": {}, "sinfo": [{"node": {"state": ["IDLE"]}}]}, "sinfo --json", "scontrol show node -o >"),
    ({"jobs": [{"job_id": 7, "job_state": ["RUNNING"], "start_time": 5}]}, "squeue --json", "sacct -a"),
    ({"reservations": [{"name": "pm", "node_list": "n1"}]}, "reservation --json", "show reservation"),
    ({"timestamp": 1, "pbs_version": "2022.1", "nodes": {"n1": {"Mom": "n1"}}}, "pbsnodes", "pbsnodes -a >"),
    ({"timestamp": 1, "pbs_version": "2022.1", "Jobs": {"1.s": {"Job_Name": "a"}}}, "qstat -F json", "tar"),
    ({"COMMAND": "bjobs", "JOBS": 1, "RECORDS": [{"JOBID": "1"}]}, "bjobs", "lsb"),
    ([{"ClusterId": 1, "ProcId": 0}], "condor_history", "nodes=LastRemoteHost"),
]
TEXTS = [*((text, *found) for text, found in OUTPUTS.items()), *((json.dumps(a), b, c) for a, b, c in DOCUMENTS)]


@pytest.mark.parametrize(("text", "name", "fix"), TEXTS, ids=[f"{k}-{name}" for k, (_, name, _) in enumerate(TEXTS)])
def test_the_output_of_a_command_is_named_with_the_command_to_run_instead(tmp_path, text, name, fix):
    path = tmp_path / "seen.txt"
    path.write_text(text + "\n")
    with pytest.raises(InputError) as error:
        read_log(path)
    assert error.value.problem.startswith("this is the output of ")
    assert name in error.value.problem
    assert fix in error.value.fix
    assert error.value.file == str(path)


def test_every_form_is_tried_and_names_a_command_that_there_is(tmp_path):
    found = set()
    for k, (text, *_) in enumerate(TEXTS):
        path = tmp_path / str(k)
        path.write_text(text + "\n")
        found.add(command_output(LogFile(path)).name)
    known = [output for _, output in (*_TEXTS, *_JSON)]
    untried = {"scontrol show partition", "bacct", "bhosts -json", "condor_history -json"}
    assert {name for name, *_ in known} - found <= untried
    for _, _, scheduler, export in known:
        assert scheduler in BY_TABLE or export < len(find_reader(scheduler).exports)


@pytest.mark.parametrize("reader", [name for name in READERS.names() if name != "table"])
def test_a_named_reader_names_it_too(tmp_path, reader):
    path = tmp_path / "queue.txt"
    path.write_text("JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n")
    with pytest.raises(InputError, match="the output of squeue"):
        ingest(path, reader)


def read_as_told(path, **changed):
    """Read a table of HTCondor's jobs with the options that ``auto`` gives for it."""
    with pytest.raises(InputError) as error:
        read_log(path)
    words = shlex.split(error.value.fix.split(" (FILE")[0])
    mapping = dict(word.split("=") for word in words if "=" in word)
    return read_log(path, "table", ReadOptions(mapping=mapping | changed)).record


def test_the_command_for_htcondor_reads_its_hosts_without_their_slots(tmp_path):
    rows = (
        "ClusterId\tProcId\tJobStatus\tLastRemoteHost\tJobStartDate\tCompletionDate\tRemoteWallClockTime",
        "1\t0\t4\tslot1_1@gp1.ex.org\t1705305912\t1705313430\t7518",
        "2\t0\t4\tslot1@gp2_17@gp1.ex.org\t1705306000\t1705310000\t4000",
        "3\t0\t5\t\t0\t0\t0",
        "4\t0\t3\tslot2@gp2.ex.org\t1705309900\t0\t800",
        "5\t0\t3\tundefined\tundefined\tundefined\t0.0",
        "6\t0\t4\tslot1_1@gp2.ex.org, vm2@gp3\t1705309000\t1705309100\t100.0",
    )
    path = tmp_path / "condor.tsv"
    path.write_text("\n".join(rows) + "\n")
    record = read_as_told(path)
    assert sorted(intervals(record, 1_000_000)) == [
        (1705305912, 1705313430, 1, ("gp1.ex.org",)),
        (1705306000, 1705310000, 1, ("gp1.ex.org",)),
        (1705309000, 1705309100, 2, ("gp2.ex.org", "gp3")),
        (1705309900, 1705310700, 1, ("gp2.ex.org",)),  # removed: its end is start plus running time
    ]
    assert record.report.skipped["never started"].count == 2
    assert {sentence: tally.count for sentence, tally in record.report.warnings.items()} == {ENDS_BY_ELAPSED: 1}


def test_jobs_that_run_by_the_codes_of_htcondor_have_no_end(tmp_path):
    path = tmp_path / "condor.tsv"
    rows = [f"{job}\t{code}\tslot1@h{code}\t1705305912\t{end}\t9" for job, (code, end) in enumerate(CODES.items())]
    path.write_text("ClusterId\tJobStatus\tLastRemoteHost\tJobStartDate\tCompletionDate\tRun\n" + "\n".join(rows))
    record = read_as_told(path, elapsed="Run")
    assert {names[0] for _, end, _, names in intervals(record) if end is None} == {"h2", "h6", "h7"}
    path.write_text(path.read_text().replace("JobStatus", "code"))  # where such numbers may mean something else
    record = read_as_told(path, elapsed="Run", state="code")
    assert {names[0] for _, end, _, names in intervals(record) if end is None} == set()


CODES = {1: 0, 2: 0, 3: 0, 4: 1705305921, 5: 0, 6: 0, 7: 0}


@pytest.mark.parametrize("header", ["JOBID|PARTITION|begin|finish|hosts", "NODE|JOB|STATE|begin|finish"])
def test_a_table_with_columns_like_those_of_a_command_is_read_if_it_is_given_as_one(tmp_path, header):
    path = tmp_path / "jobs.psv"
    path.write_text(f"{header}\n1|b|1717200000|1717203600|n1\n2|b|1717203600|1717207200|n2\n")
    names = dict(zip(("start", "end"), ("begin", "finish"), strict=True))
    if "hosts" in header:
        mapping = {**names, "nodes": "hosts"}
    else:
        path.write_text(f"{header}\nn1|1|x|1717200000|1717203600\nn2|2|x|1717203600|1717207200\n")
        mapping = {**names, "nodes": "NODE", "job": "JOB"}
    log = read_log(path, "table", ReadOptions(mapping=mapping, delimiter="|"))
    assert log.record.nodes == ("n1", "n2")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([{"id": 1, "start_time": 1, "end_time": 2, "hosts": ["n1"]}]),
        ",".join(["2024-06-01T00:00:00"] * 30),
        "JOBID PARTITION   PRIORITY       SITE",
        "NodeName=n[1-4] CPUs=16 State=UNKNOWN",
    ],
)
def test_what_is_no_output_of_a_known_command_is_not_called_one(tmp_path, text):
    path = tmp_path / "seen.txt"
    path.write_text(text + "\n")
    assert command_output(LogFile(path)) is None


def test_a_long_line_takes_no_long_time_and_a_log_of_jobs_is_no_output_of_a_command(tmp_path):
    path = tmp_path / "seen.txt"
    for text in ("NodeName TimeStart " * 5_000, '{"pbs_version"' * 5_000, '{"nodes": [' * 5_000, "a:" * 30_000):
        path.write_text(text)
        command_output(LogFile(path))
    path.write_text("job,start,end,nodes\n1,2024-06-01T00:00:00Z,2024-06-01T01:00:00Z,n1\n")
    assert command_output(LogFile(path)) is None
