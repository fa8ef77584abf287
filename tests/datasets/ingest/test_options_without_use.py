"""Options that do not apply to a log: refused, or named in the report."""

import pytest

from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.errors import InputError
from tests.datasets.ingest.small_logs_of_formats import SMALL_LOGS

COUNTS = "ID,Start Time,End Time,Nodes\n0,0,7200,72\n1,3600,10800,36\n2,10800,14400,108\n"
TIMES = (
    "job,start,end,nodes\n1,2024-06-01T00:00:00Z,2024-06-01T01:00:00Z,n1\n"
    "2,2024-06-01T00:00:00Z,2024-06-01T02:00:00Z,n2\n"
)
SACCT = (
    "JobIDRaw|State|Start|End|NNodes|NodeList\n1|COMPLETED|2024-06-01T00:00:00|2024-06-01T01:00:00|1|n1\n"
    "2|COMPLETED|2024-06-01T00:00:00|2024-06-01T02:00:00|2|n[1-2]\n"
)
SWF = "; UnixStartTime: 1000\n; MaxNodes: 4\n; MaxProcs: 8\n" + "1 0 0 10 2 -1 -1 -1 -1 -1 1 1 1 -1 -1 -1 -1 -1\n" * 2


def log_of(tmp_path, text, reader="auto", rules=None, **options):
    path = tmp_path / "log.txt"
    path.write_text(text)
    log = read_log(path, reader, ReadOptions(**{"n_nodes": 280 if text == COUNTS else None, **options}))
    return log.build(OccupancyRules(window="full", **(rules or {})))


def test_processors_per_node_do_not_go_with_numbers_of_nodes(tmp_path):
    with pytest.raises(InputError) as error:
        log_of(tmp_path, COUNTS, procs_per_node=36)
    assert "'Nodes' is read as a number of nodes" in error.value.problem
    assert "--map processors='Nodes'" in error.value.fix
    built = log_of(tmp_path, COUNTS, procs_per_node=36, mapping={"processors": "Nodes"})
    assert built.report.facts["node_hours"]["idle"] == 4 * 280 - (2 * 2 + 1 * 2 + 3 * 1)


def test_processors_per_node_may_be_for_another_of_several_tables(tmp_path):
    (tmp_path / "a.csv").write_text(COUNTS)
    (tmp_path / "b.csv").write_text("ID,Start Time,End Time,Processors\n3,0,7200,72\n4,0,7200,36\n5,0,7200,108\n")
    log = read_log([tmp_path / "a.csv", tmp_path / "b.csv"], "table", ReadOptions(n_nodes=280, procs_per_node=36))
    assert sorted(count for rows, _ in log.record.jobs.slices() for count in rows.count.tolist()) == [
        1,
        2,
        3,
        36,
        72,
        108,
    ]


def test_processors_beside_a_number_of_nodes_are_not_needed(tmp_path):
    built = log_of(
        tmp_path, "job,start,end,num_nodes,cpus\n1,0,7200,2,32\n2,0,3600,1,16\n", n_nodes=4, procs_per_node=16
    )
    assert built.report.facts["--procs-per-node"].startswith("has no effect")
    assert built.report.facts["node_hours"]["busy"] == 5.0


NO_USE = [
    (SACCT, "slurm", {"procs_per_node": 4}, "--procs-per-node"),
    (SACCT, "slurm", {"mapping": {"start": "Start"}}, "--map"),
    (SACCT, "slurm", {"time_unit": "ms"}, "--time-unit"),
    (SACCT, "slurm", {"missing_wait_is_zero": True}, "--missing-wait-is-zero"),
    (SWF, "swf", {"columns": ("a", "b")}, "--columns"),
    (SWF, "swf", {"reservations": "reserved"}, "--reservations"),
    (TIMES, "table", {"reservations": "reserved"}, "--reservations"),
    (TIMES, "table", {"missing_wait_is_zero": True}, "--missing-wait-is-zero"),
]


@pytest.mark.parametrize(("text", "reader", "options", "flag"), NO_USE)
@pytest.mark.parametrize("is_named", [False, True])
def test_an_option_of_other_formats_is_refused(tmp_path, text, reader, options, flag, is_named):
    with pytest.raises(InputError) as error:
        log_of(tmp_path, text, reader if is_named else "auto", **{"timezone": "UTC", **options})
    assert error.value.problem == f"{flag} does not apply to a log read as {reader}"
    assert f"omit {flag}" in error.value.fix
    assert reader not in error.value.expected.split("is for ")[1].split(", ")


NOTED = [
    (SWF, {"timezone": "UTC"}, {}, "--tz", "has no effect on this log, which has no local times"),
    (SWF, {"dst_fold": "later"}, {}, "--dst-fold", "has no effect: no local time was left ambiguous"),
    (SWF, {"missing_wait_is_zero": True}, {}, "--missing-wait-is-zero", "has no effect: every job has a waiting time"),
    (TIMES, {"timezone": "UTC"}, {}, "--tz", "has no effect: no time is local"),
    (
        SACCT.replace("2024-06-01T0", "17172").replace(":00:00", "0000"),
        {"timezone": "UTC"},
        {},
        "--tz",
        "has no effect: no",
    ),
    (SACCT, {"dst_fold": "earlier"}, {}, "--dst-fold", "has no effect: no local time was left ambiguous"),
    (TIMES, {"time_unit": "ms"}, {}, "--time-unit", "has no effect: no start or end is a number"),
    (SACCT, {"columns": ("a", "b")}, {}, "--columns", "has no effect on log.txt, which has a header line"),
    (SACCT, {"reservations": "reserved"}, {}, "--reservations", "has no effect: no reservation was read"),
    (SACCT, {}, {"assignment": "random"}, "--assignment", "has no effect: the log names the nodes of every job"),
    (SACCT, {}, {"oversubscription": "drop"}, "--oversubscription", "has no effect: the log names the nodes of every"),
    (SACCT, {}, {"seed": 3}, "--seed", "has no effect: the log names the nodes of every job"),
    (COUNTS, {}, {"seed": 3}, "--seed", "has no effect: only --assignment random draws by it"),
    (COUNTS, {}, {"absent_after_s": 60.0}, "--absent-after", "has no effect: the size of the machine is known"),
    (SACCT, {}, {"empty_machine": "idle", "empty_after_s": 60.0}, "--empty-after", "has no effect: an empty machine"),
]


@pytest.mark.parametrize(("text", "options", "rules", "flag", "note"), NOTED)
def test_an_option_that_this_log_has_no_use_for_is_named(tmp_path, text, options, rules, flag, note):
    facts = log_of(
        tmp_path, text, rules=rules, **{**({"timezone": "UTC"} if text == SACCT else {}), **options}
    ).report.facts
    assert facts[flag].startswith(note)
    plain = log_of(tmp_path, text, **({"timezone": "UTC"} if text == SACCT else {})).report.facts
    assert not [name for name in plain if name.startswith("--")]


@pytest.mark.parametrize("name", SMALL_LOGS)
def test_no_option_is_noted_or_refused_that_has_its_default(tmp_path, name):
    log = SMALL_LOGS[name]
    files = log.write(tmp_path)
    record = read_log(files, log.reader, ReadOptions(timezone=log.options.timezone, n_nodes=log.options.n_nodes)).record
    assert not [fact for fact in record.report.facts if fact.startswith("--") and fact != "--tz"]
