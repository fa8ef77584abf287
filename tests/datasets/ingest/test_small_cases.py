"""Small inputs that once failed, as their folder in ``shared`` has them (``cases/README.md``)."""

import pytest

from bfreplay.datasets.ingest.occupancy.build import MOSTLY_CUT_OFF, RESERVED_IDLE
from bfreplay.datasets.ingest.occupancy.findings import LEFT_IDLE, NO_RUNNING_JOBS
from bfreplay.datasets.ingest.occupancy.inventory import NAMED_OTHERWISE
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import CUT
from bfreplay.datasets.ingest.read_log import ingest
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.ingest.table.table_jobs import ENDS_BY_ELAPSED
from bfreplay.datasets.log.log_warnings import Verdict
from bfreplay.errors import InputError


def read(shared, *names, window="full", rules=None, timezone="UTC", **options):
    files = [shared / "cases/logs" / name for name in names]
    rules = OccupancyRules(window=window, **(rules or {}))
    events, report = ingest(files, options=ReadOptions(timezone=timezone, **options), rules=rules)
    return events.metadata.log_warnings, report


def amounts(report):
    return {sentence: tally.node_hours for sentence, tally in report.warnings.items()}


def test_processors_in_a_column_of_node_counts(shared):
    given = {"n_nodes": 280, "procs_per_node": 36}
    with pytest.raises(InputError, match="--map processors="):
        read(shared, "c34b-cores.csv", **given)
    _, report = read(shared, "c34b-cores.csv", **given, mapping={"processors": "Nodes"})
    assert report.facts["node_hours"]["idle"] == 1_111.0


def test_separators_inside_submit_lines(shared):
    _, report = read(shared, "c17-submitline.psv")
    assert (report.kept, report.skipped, report.warnings) == ({"job intervals": 4}, {}, {})


def test_states_of_nodes_with_every_flag(shared):
    _, report = read(shared, "c11b-jobs.psv", "c11b-words.psv")
    assert (report.facts["node_hours"]["reserved"], report.facts["node_hours"]["idle"]) == (4.0, 12.0)
    assert report.warnings == {}


def test_an_array_element_that_was_pending(shared):
    _, report = read(shared, "c05b-pending-array.acct")
    assert (list(report.skipped), report.warnings) == (["never started"], {})


def test_a_node_of_one_job_has_the_idle_hours_of_that_node(shared):
    log_warnings, report = read(shared, "c35-onejob.psv")
    # 12 hours before its job, 42 after it but for the six in which the whole machine was empty and counts as down
    assert amounts(report) == {NAMED_OTHERWISE: 12 + 24 + 18, NO_RUNNING_JOBS: 18}
    assert log_warnings.verdict is not Verdict.UNKNOWN


def test_a_cut_location_is_one_warning_of_its_job(shared):
    log_warnings, report = read(shared, "c29-djc.csv")
    assert (amounts(report), log_warnings.verdict) == ({CUT: 18.0}, Verdict.SMALL)
    log_warnings, report = read(shared, "c29-djc.csv", window="estimate")
    assert amounts(report) == {CUT: 18.0, MOSTLY_CUT_OFF: pytest.approx(18.0)}
    assert log_warnings.verdict is Verdict.SMALL


def test_nodes_in_reservations(shared):
    _, report = read(shared, "c10-jobs.psv", "c10-resv.psv")
    assert report.facts["node_hours"]["idle"] == 38.0
    assert amounts(report) == {LEFT_IDLE: 36.0, RESERVED_IDLE: 9.0}
    log_warnings, _ = read(shared, "c10-jobs.psv", "c10-resv.psv", rules={"empty_machine": "idle"})
    assert [(each.node_hours, each.share) for each in log_warnings.warnings] == [(9.0, 9 / 38)]


def test_accounting_of_grid_engine_with_a_parallel_job_on_two_lines(shared):
    _, report = read(shared, "c01-sge-classic.acct", timezone=None)
    reasons = ["never started", "further line of a parallel job, whose host is held with it"]
    assert (report.kept, list(report.skipped), report.warnings) == ({"job intervals": 3}, reasons, {})
    # na01 for 7,200 and 1,000 s, na02 and na03 for 3,600 s
    assert report.facts["node_hours"]["busy"] == pytest.approx((7_200 + 1_000 + 2 * 3_600) / 3_600)


def test_slots_of_htcondor_share_their_host(shared):
    names = ("job=ClusterId", "start=JobStartDate", "end=CompletionDate", "elapsed=RemoteWallClockTime")
    mapping = dict(name.split("=") for name in (*names, "state=JobStatus", "nodes=LastRemoteHost"))
    files = [shared / "cases/logs/c20-condor.tsv"]
    events, report = ingest(files, "table", ReadOptions(mapping=mapping), OccupancyRules(window="full", min_gap_s=0))
    assert events.nodes == ("gp1.ex.org", "gp2.ex.org")
    # gp1 from 5912 to 13430; gp2 from 9000 to 13000, with the removed job from 9900 to 10700 inside
    assert report.facts["node_hours"]["busy"] == pytest.approx((7_518 + 4_000) / 3_600)
    assert amounts(report) == {ENDS_BY_ELAPSED: pytest.approx(800 / 3_600)}


@pytest.mark.parametrize(
    ("name", "problem", "fix"),
    [
        ("c10-scontrol-res.txt", "scontrol show reservation", "sacctmgr -P show reservation"),
        ("c14-nodes.json", "sinfo --json", "while sleep 60; do SLURM_TIME_FORMAT=%s scontrol"),
        ("c15-human.txt", "sacct without -P", "sacct -a -X -D -P"),
        ("c20-condor.tsv", "condor_history", "bfreplay ingest table FILE --map job=ClusterId"),
        ("c33-german.psv", "SLURM_TIME_FORMAT was set", "unset SLURM_TIME_FORMAT; TZ=UTC sacct"),
    ],
)
def test_what_is_no_log_is_named_with_the_command_to_type(shared, name, problem, fix):
    with pytest.raises(InputError) as error:
        read(shared, name)
    assert problem in error.value.problem
    assert fix in error.value.fix


def test_a_note_that_submit_times_are_start_times(shared):
    _, report = read(shared, "c36-submit-is-start.swf", timezone=None)
    assert report.kept == {"job intervals": 4}
    note = "There is no information on wait times - the given submit times are actually start times"
    assert (report.facts["start times: the submit times, by a note of the log"], report.warnings) == (note, {})
