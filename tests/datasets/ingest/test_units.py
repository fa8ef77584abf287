"""Logs of the GPUs and cores of shared nodes, from ``AllocTRES``, ``exec_vnode`` and ``exec_host``."""

import gzip
import json
import re
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from bfreplay.datasets.batch_jobs import load_batch_jobs
from bfreplay.datasets.idleness import characterise
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.occupancy import findings
from bfreplay.datasets.ingest.occupancy.build import RESERVED_IDLE
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.occupancy.schedule import NO_LIST
from bfreplay.datasets.ingest.occupancy.units import CORES_HELD, NONE_THERE, OVER, UNEVEN, UNKNOWN
from bfreplay.datasets.ingest.read_log import ingest, read_log
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.log.load import load_events, write_events
from bfreplay.errors import InputError
from tests.datasets.ingest.units_plain import idle_unit_us, most_held, shares

HOUR_US = 3_600_000_000
FULL = OccupancyRules(window="full", min_gap_s=0.0, empty_machine="idle")
HEADER = "JobIDRaw|State|Start|End|NNodes|NodeList|AllocTRES"
TABLE = "node,gpus,cores\ng[1-2],4,16\nc1,0,16\n"


def slurm_row(job, start, end, nodes, tres):
    start, end = (f"2024-03-01T{hour:02d}:00:00" for hour in (start, end))
    return f"{job}|COMPLETED|{start}|{end}|{len(expand_nodes(nodes))}|{nodes}|{tres}"


def written(folder, name, *lines):
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def gpus(folder, *rows, table=TABLE, unit="gpu", **more):
    """Return the events and the report of rows of ``sacct``."""
    log = written(folder, "jobs.psv", HEADER, *rows)
    options = ReadOptions(timezone="UTC", unit=unit)
    return ingest(log, "slurm", options, FULL, units=written(folder, "units.csv", table), **more)


def idle_hours(events):
    """Return the idle hours of each unit that is ever idle, by name."""
    hours, since = dict.fromkeys(events.nodes, 0.0), dict.fromkeys(events.nodes)
    for batch in events.batches():
        for time_us, node, state in zip(batch.time_us.tolist(), batch.node.tolist(), batch.state.tolist(), strict=True):
            name = events.nodes[node]
            if since[name] is not None:
                hours[name] += (time_us - since[name]) / HOUR_US
            since[name] = time_us if state == 0 else None
    for name, begin in since.items():
        hours[name] += 0 if begin is None else (events.window_end_us - begin) / HOUR_US
    return hours


def test_idle_gpus_of_a_half_used_node_are_seen(tmp_path):
    # from 00 to 04: job 1 holds 2 of g1's 4 GPUs for 3 h, job 2 one of each node for 2 h; c1 has none
    events, report = gpus(
        tmp_path,
        slurm_row(1, 0, 3, "g1", "cpu=8,gres/gpu:a100=2,gres/gpu=2,node=1"),
        slurm_row(2, 1, 3, "g[1-2]", "cpu=2,gres/gpu=2,node=2"),
        slurm_row(3, 3, 4, "g2", "cpu=4,gres/gpu:v100=3,node=1"),
    )
    hours = idle_hours(events)
    assert [hours[f"g1/gpu{number}"] for number in range(4)] == [1, 1, 2, 4]
    assert [hours[f"g2/gpu{number}"] for number in range(4)] == [1, 3, 3, 4]
    assert (events.metadata.unit, len(events.nodes), list(report.warnings)) == ("gpu", 8, [])
    assert "1 of its 3 nodes without any" in report.facts["units"]


def test_a_job_takes_the_lowest_units_that_no_other_holds(tmp_path):
    rows = [
        slurm_row(1, 0, 2, "g1", "cpu=1,gres/gpu=2"),
        slurm_row(2, 1, 4, "g1", "cpu=1,gres/gpu=1"),
        slurm_row(3, 2, 3, "g1", "cpu=1,gres/gpu=3"),
    ]
    log = written(tmp_path, "jobs.psv", HEADER, *rows)
    options = ReadOptions(timezone="UTC", unit="gpu")
    read = read_log(log, "slurm", options, units=written(tmp_path, "units.csv", TABLE), job_names=True)
    built = read.build(FULL)
    write_events(built.events, tmp_path / "e.parquet")
    built.write_batch_jobs(tmp_path / "b.parquet")
    events = load_events(tmp_path / "e.parquet")
    jobs = load_batch_jobs(tmp_path / "b.parquet", events)
    names = [
        [events.nodes[node] for node in jobs.node[begin:end]]
        for begin, end in zip(jobs.first[:-1], jobs.first[1:], strict=True)
    ]
    assert names == [["g1/gpu0", "g1/gpu1"], ["g1/gpu2"], ["g1/gpu0", "g1/gpu1", "g1/gpu3"]]
    assert events.metadata.unit == "gpu"


def test_a_job_with_all_cores_of_its_nodes_holds_all_their_gpus(tmp_path):
    whole, report = gpus(tmp_path, slurm_row(1, 0, 2, "g[1-2]", "cpu=32"), slurm_row(2, 2, 4, "g1", "cpu=1,gres/gpu=1"))
    assert idle_hours(whole) == {"g1/gpu0": 0} | dict.fromkeys([f"g1/gpu{n}" for n in (1, 2, 3)], 2) | {
        f"g2/gpu{n}": 2 for n in range(4)
    }
    assert CORES_HELD not in report.warnings


def test_jobs_without_gpus_keep_the_machine_in_use_and_are_warned_of(tmp_path):
    # for 2 h a quarter of g1's cores: the doubt is a quarter of its 4 GPUs
    rows = (
        slurm_row(1, 0, 1, "g1", "cpu=1,gres/gpu=1"),
        slurm_row(2, 1, 3, "g1", "cpu=4"),
        slurm_row(3, 1, 3, "c1", "cpu=4"),
    )
    log, rules = written(tmp_path, "jobs.psv", HEADER, *rows), OccupancyRules(window="full")
    units = written(tmp_path, "units.csv", TABLE)
    _, report = ingest(log, "slurm", ReadOptions(timezone="UTC", unit="gpu"), rules, units=units)
    tally = report.warnings[CORES_HELD]
    assert (tally.count, tally.node_hours) == (1, 2.0)
    assert report.facts["node_hours"]["idle"] == 8 * 3 - 1  # an empty machine would be down after an hour
    without = written(tmp_path, "gpus.csv", "node,gpus", "g[1-2],4", "c1,0")
    _, report = ingest(log, "slurm", ReadOptions(timezone="UTC", unit="gpu"), rules, units=without)
    assert report.warnings[CORES_HELD].to_json(has_amount=True)["why_no_amount"].startswith("the file of --units")


def test_units_that_do_not_divide_go_to_the_first_nodes_as_far_as_these_have_some(tmp_path):
    events, report = gpus(
        tmp_path,
        slurm_row(1, 0, 1, "a,b,c", "cpu=3,gres/gpu=5"),
        slurm_row(2, 1, 2, "a,b,c", "cpu=3,gres/gpu=7"),
        slurm_row(3, 2, 3, "a,b,c", "cpu=3,gres/gpu=9"),
        table="node,gpus\na,1\nb,4\nc,4\n",
    )
    hours = idle_hours(events)
    per_node = {node: sum(value for name, value in hours.items() if name[0] == node) for node in "abc"}
    assert per_node == {"a": 0, "b": 2 + 1, "c": 2 + 1}  # 1 2 2, 1 3 3, then all of them
    assert report.warnings[UNEVEN].count == 2
    assert report.warnings[UNEVEN].aside


@pytest.mark.parametrize(
    ("row", "sentence", "hours"),
    [
        (slurm_row(2, 0, 2, "g1", "cpu=1,gres/gpu=6"), OVER, 4.0),  # two more than there are
        (slurm_row(2, 0, 2, "c1", "cpu=1,gres/gpu=3"), NONE_THERE, 6.0),
        (slurm_row(2, 0, 2, "g1", ""), UNKNOWN, 8.0),
    ],
)
def test_what_the_file_of_units_contradicts_is_warned_of_with_its_hours(tmp_path, row, sentence, hours):
    _, report = gpus(tmp_path, slurm_row(1, 0, 2, "g2", "cpu=1,gres/gpu=1"), row)
    tally = report.warnings[sentence]
    assert (tally.count, tally.node_hours) == (1, hours)


def test_jobs_that_together_hold_too_many_units_get_them_as_they_become_free(tmp_path):
    # g1 has 4: job 2 lacks one until job 1 ends at 2
    events, report = gpus(
        tmp_path, slurm_row(1, 0, 2, "g1", "cpu=1,gres/gpu=2"), slurm_row(2, 1, 4, "g1", "cpu=1,gres/gpu=3")
    )
    assert idle_hours(events)["g1/gpu0"] == 0
    assert sum(hours for name, hours in idle_hours(events).items() if name[:2] == "g1") == 2 + 0 + 2
    assert (report.warnings[OVER].count, report.warnings[OVER].node_hours) == (1, 1.0)


def test_an_outage_of_a_node_is_one_of_all_its_units(tmp_path):
    outage = written(tmp_path, "out.csv", "node,start,end,state", "g2,2024-03-01T01:00:00Z,2024-03-01T02:00:00Z,down")
    events, report = gpus(tmp_path, slurm_row(1, 0, 4, "g1", "cpu=1,gres/gpu=1"), outages=[outage])
    hours = idle_hours(events)
    assert {hours[f"g2/gpu{number}"] for number in range(4)} == {3.0}
    assert report.facts["node_hours"]["down"] == 4
    assert events.metadata.node_inventory == "metadata"


def test_names_of_units_sort_by_number(tmp_path):
    events, _ = gpus(
        tmp_path, slurm_row(1, 0, 4, "n1", "cpu=3"), unit="core", table="node,cores\nn1,12\nn1-a,2\nn10,1\n"
    )
    expected = ["n1-a/core00", "n1-a/core01", *(f"n1/core{number:02d}" for number in range(12)), "n10/core00"]
    assert list(events.nodes) == expected
    assert [name for name, hours in idle_hours(events).items() if not hours] == expected[2:5]


@pytest.mark.parametrize("column", ["AllocCPUS", "NCPUS"])
def test_cores_are_read_from_the_number_of_processors_too(tmp_path, column):
    log = written(tmp_path, "j.psv", HEADER.replace("AllocTRES", column), slurm_row(1, 0, 4, "g1", "10"))
    options = ReadOptions(timezone="UTC", unit="core")
    events, _ = ingest(log, "slurm", options, FULL, units=written(tmp_path, "u.csv", TABLE))
    assert sum(idle_hours(events).values()) == 4 * (3 * 16 - 10)


def test_jobs_of_json_have_their_gpus(tmp_path):
    times = {"start": 1_709_251_200, "end": 1_709_258_400, "elapsed": 7_200, "submission": 1_709_251_200}
    allocated = [
        {"type": "cpu", "name": "", "count": 4},
        {"type": "gres", "name": "gpu", "count": 3},
        {"type": "gres", "name": "gpu:a100", "count": 3},
        {"type": 7, "name": None},
        None,
    ]
    job = {"job_id": 1, "state": {"current": ["COMPLETED"]}, "time": times, "nodes": "g1", "allocation_nodes": 1}
    document = {"jobs": [job | {"tres": {"allocated": allocated}, "association": {}, "steps": []}]}
    log = written(tmp_path, "jobs.json", json.dumps(document))
    units = written(tmp_path, "u.csv", TABLE)
    events, report = ingest(log, "slurm", ReadOptions(unit="gpu"), FULL, units=units)
    assert sum(idle_hours(events).values()) == 2 * (8 - 3)
    assert UNKNOWN not in report.warnings


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        ({"unit": "gpu", "units": None}, "the GPUs of the nodes are not known"),
        ({"unit": "gpu", "inventory": "units.csv"}, "--units and --inventory cannot both be"),
        ({"unit": "core", "n_nodes": 3}, "--units and --nodes cannot both be"),
        ({"unit": "gpu", "inventory_only": True}, "--units and --inventory-only cannot both be"),
        ({"unit": "core", "header": HEADER.replace("AllocTRES", "QOS")}, "--unit core needs the column AllocTRES"),
        ({"unit": "gpu", "header": HEADER.replace("AllocTRES", "NCPUS")}, "--unit gpu needs the column AllocTRES"),
        ({"unit": "gpu", "table": "node,gpus\ng1,4\n"}, "jobs ran on 1 node that the file of --units does not have"),
        ({"unit": "gpu", "table": "node,gpus\ng[1-2],4\ng2,4\n"}, "a node has two rows"),
        ({"unit": "gpu", "table": "node,cores\ng[1-2],4\n"}, "nodes have no number of GPUs"),
        ({"unit": "gpu", "table": "node,gpus\ng[1-2],0\n"}, "no node of the table has any GPU"),
        ({"unit": "gpu", "table": "node,gpus\ng1.x,4\nG1.y,4\n", "node_names": "short-lower"}, "become one node"),
        ({"unit": "gpu", "tres": "cpu=1"}, "no job of the log holds a GPU"),
    ],
)
def test_what_is_missing_is_refused_by_name(tmp_path, more, problem):
    tres, header = more.pop("tres", "cpu=1,gres/gpu=1"), more.pop("header", HEADER)
    log = written(tmp_path, "jobs.psv", header, slurm_row(1, 0, 4, "g[1-2]", tres))
    units = written(tmp_path, "units.csv", more.pop("table", TABLE))
    files = {"units": units} | {
        name: more.pop(name) for name in ("units", "inventory", "inventory_only") if name in more
    }
    with pytest.raises(InputError, match=re.escape(problem)):
        ingest(log, "slurm", ReadOptions(timezone="UTC", **more), FULL, **files)


def test_samples_of_node_states_are_refused(tmp_path):
    log = written(tmp_path, "jobs.psv", HEADER, slurm_row(1, 0, 4, "g1", "cpu=1,gres/gpu=1"))
    samples = written(tmp_path, "sinfo", "1709251200|g1|mixed", "1709251260|g1|idle", "1709251320|g1|mixed")
    units = written(tmp_path, "units.csv", TABLE)
    with pytest.raises(InputError, match="samples of node states do not say which GPUs are held"):
        ingest([log, samples], "slurm", ReadOptions(timezone="UTC", unit="gpu"), FULL, units=units)


def test_a_file_of_units_is_an_inventory_of_whole_nodes(tmp_path):
    events, _ = gpus(tmp_path, slurm_row(1, 0, 4, "g1", "cpu=1,gres/gpu=1"), unit="node")
    assert list(events.nodes) == ["c1", "g1", "g2"]
    assert "unit" not in events.metadata.to_json()


def pbs_line(kind, job, start, end, lists):
    begin, finish = 1_709_251_200 + 3_600 * start, 1_709_251_200 + 3_600 * end
    stamp = datetime.fromtimestamp(begin if kind == "S" else finish, UTC).strftime("%m/%d/%Y %H:%M:%S")
    return f"{stamp};{kind};{job}.srv;user=a ctime={begin} start={begin} end={finish} {lists} session=1"


@pytest.mark.parametrize(
    ("lists", "unit", "held"),
    [
        ("exec_host=g1/0*4 exec_vnode=(g1:ncpus=4:ngpus=1:mem=1gb)", "gpu", {"g1": 1}),
        (
            "exec_host=g1/0*4+g2/0*6 exec_vnode=(g1:ncpus=4:ngpus=1)+(g2:ncpus=4+g2[1]:ncpus=2:ngpus=2)",
            "gpu",
            {"g1": 1, "g2": 2},
        ),
        (
            "exec_host=g1/0*4+g2/0*6 exec_vnode=(g1:ncpus=4:ngpus=1)+(g2:ncpus=4+g2[1]:ncpus=2)",
            "core",
            {"g1": 4, "g2": 6},
        ),
        ("exec_host=g1/0*13", "core", {"g1": 13}),
        ("exec_host=g1/0-9+g2/0-7", "core", {"g1": 10, "g2": 8}),
        ("exec_host=g1/4-7,9+c1/3+c1/5", "core", {"g1": 5, "c1": 2}),
        ("exec_host=g1/0*1 exec_vnode=(g1:ncpus=1) Resource_List.place=scatter:excl", "gpu", {"g1": 4}),
        ("exec_host=g1/0*1+g2/0*1 Resource_List.ngpus=4", "gpu", {"g1": 2, "g2": 2}),
        ("exec_vnode=(g1:ncpus=16)", "gpu", {"g1": 4}),  # all cores
    ],
)
def test_units_of_pbs_jobs(tmp_path, lists, unit, held):
    log = written(tmp_path, "20240301", pbs_line("S", 1, 0, 4, lists), pbs_line("E", 1, 0, 4, lists))
    events, report = ingest(log, "pbs", ReadOptions(unit=unit), FULL, units=written(tmp_path, "u.csv", TABLE))
    hours = idle_hours(events)
    busy = {
        node: [name for name in hours if name.startswith(f"{node}/") and not hours[name]] for node in ("g1", "g2", "c1")
    }
    assert {node: len(names) for node, names in busy.items() if names} == held
    assert not {OVER, UNKNOWN, UNEVEN} & report.warnings.keys()


def test_a_pbs_job_on_a_node_that_the_file_does_not_have_is_refused(tmp_path):
    log = written(tmp_path, "20240301", pbs_line("E", 1, 0, 4, "exec_vnode=(x9:ncpus=1:ngpus=1)+(g1:ncpus=1:ngpus=1)"))
    with pytest.raises(InputError, match="jobs ran on 1 node that the file") as caught:
        ingest(log, "pbs", ReadOptions(unit="gpu"), FULL, units=written(tmp_path, "u.csv", TABLE))
    assert caught.value.value == "x9"


def check(log, reader, unit, units, jobs, folder, **options):
    """Check the idle time of a log against the plain computation, to the microsecond."""
    table = written(folder, "units.csv", f"node,{unit}s", *(f"{node},{number}" for node, number in units.items()))
    events, report = ingest(log, reader, ReadOptions(unit=unit, **options), FULL, units=table)
    expected = idle_unit_us(jobs, units, events.window_start_us, events.window_end_us)
    assert characterise(events).idle_node_us == expected
    return expected / HOUR_US, report


def generated(rng, n_jobs=1_000, n_nodes=20, n_units=8):
    """Return jobs that share nodes, of one node or several, with more units together than there are."""
    names = [f"n{number:02d}" for number in range(n_nodes)]
    jobs = []
    for _ in range(n_jobs):
        width = int(rng.integers(1, 4))
        nodes = sorted(rng.choice(names, width, replace=False).tolist())
        start = int(rng.integers(0, 200_000))
        each = [int(number) for number in rng.integers(1, n_units + 1, width)]
        jobs.append((start, start + int(rng.integers(1, 9_000)), dict(zip(nodes, each, strict=True))))
    return jobs, dict.fromkeys(names, n_units)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("unit", ["gpu", "core"])
def test_a_generated_pbs_log_of_1000_jobs_against_the_plain_computation(tmp_path, seed, unit):
    jobs, units = generated(np.random.default_rng(seed))
    lines, resource = [], "ncpus" if unit == "core" else "ngpus"
    for number, (start, end, per_node) in enumerate(jobs):
        vnodes = "+".join(f"({node}:{resource}={n_held})" for node, n_held in per_node.items())
        lines.append(pbs_line("E", number, start / 3_600, end / 3_600, f"exec_vnode={vnodes}").replace(".0 ", " "))
    log = written(tmp_path, "acct", *lines)
    jobs = [((1_709_251_200 + start) * 10**6, (1_709_251_200 + end) * 10**6, held) for start, end, held in jobs]
    hours, report = check(log, "pbs", unit, units, jobs, tmp_path)
    assert hours > 100
    assert report.warnings[OVER].count > 50


@pytest.mark.parametrize("n_units", [64, 8])
def test_a_generated_slurm_log_of_1000_jobs_against_the_plain_computation(tmp_path, n_units):
    jobs, units = generated(np.random.default_rng(9), n_units=8)
    units = dict.fromkeys(units, n_units)
    rows, even_jobs = [], []
    for number, (start, end, per_node) in enumerate(jobs):
        total, nodes = sum(per_node.values()), list(per_node)
        times = (pd.Timestamp(1_709_251_200 + time, unit="s").isoformat() for time in (start, end))
        tres = f"billing=1,cpu={total},gres/gpu={total},node={len(nodes)}"
        rows.append(f"{number}|COMPLETED|{'|'.join(times)}|{len(nodes)}|{','.join(nodes)}|{tres}")
        span = ((1_709_251_200 + start) * 10**6, (1_709_251_200 + end) * 10**6)
        even_jobs.append((*span, shares(total, nodes)))
    log = written(tmp_path, "jobs.psv", HEADER, *rows)
    for unit in ("gpu", "core"):
        hours, report = check(log, "slurm", unit, units, even_jobs, tmp_path, timezone="UTC")
        assert hours > 100
        assert (OVER in report.warnings) == (n_units == 8)


def pozidriv_jobs(path):
    """Return the jobs of the log, by another reading than that of the package."""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            cells = line.rstrip("\n").split("|")
            cores = re.search(r"(?:^|,)cpu=(\d+)", cells[22])
            begin, finish = cells[12], cells[13]
            if cores and begin[:1] == "2" and finish[:1] == "2" and begin < finish:
                nodes = list(expand_nodes(cells[24]))
                start, end = (
                    round(datetime.fromisoformat(f"{time}+00:00").timestamp()) * 10**6 for time in (begin, finish)
                )
                yield start, end, shares(int(cores[1]), nodes)


@pytest.mark.parametrize("part", [1, 2])
def test_idle_cores_of_a_real_log_against_the_plain_computation(shared, tmp_path, part):
    log = shared / "data" / "logs" / "xdmod-pozidriv-sacct.psv.gz"
    jobs = list(pozidriv_jobs(log))
    units = {node: -(-most // part) for node, most in most_held(jobs).items()}  # half: most jobs hold too many
    hours, report = check(log, "slurm", "core", units, jobs, tmp_path)
    print(f"{sum(units.values()):,} cores of {len(units)} nodes, {len(jobs):,} jobs: {hours:,.4f} idle core-hours")
    assert (OVER in report.warnings) == (part == 2)


def test_idle_cores_of_a_real_pbs_log_against_the_plain_computation(shared, tmp_path):
    log = shared / "data" / "logs" / "ncar-casper-pbspro-acct-sample.txt"
    jobs = []
    for line in log.read_text().splitlines():
        if " end=" in line:
            start, end = (int(re.search(rf" {name}=(\d+)", line)[1]) * 10**6 for name in ("start", "end"))
            jobs.append((start, end, {node: int(n) for node, n in re.findall(r"\((\w+):ncpus=(\d+)", line)}))
    units = {"crhtc65": 36, "crhtc72": 36, "crhtc82": 62, "crhtc86": 62}
    check(log, "pbs", "core", units, jobs, tmp_path)
    with pytest.raises(InputError, match="no job of the log holds a GPU"):  # all have ngpus=0
        check(log, "pbs", "gpu", dict.fromkeys(units, 4), jobs, tmp_path)


def test_a_table_of_jobs_gives_gpus_by_a_column_that_is_named(tmp_path):
    table = written(
        tmp_path, "jobs.csv", "job,start,end,nodes,g", "1,0,7200,g1,3", "2,0,3600,g[1-2],2", "3,0,7200,g2,x"
    )
    units = written(tmp_path, "u.csv", TABLE)
    with pytest.raises(InputError, match="--unit gpu needs a column with the GPUs of each job"):
        ingest(table, "table", ReadOptions(unit="gpu"), FULL, units=units)
    events, report = ingest(table, "table", ReadOptions(unit="gpu", mapping={"gpus": "g"}), FULL, units=units)
    assert sum(idle_hours(events).values()) == 1  # g1 has 4: 3 and 1 in the first hour; job 3 holds all of g2
    assert report.warnings[UNKNOWN].count == 1


def test_the_idle_gpus_are_called_so(tmp_path):
    events, _ = gpus(tmp_path, slurm_row(1, 0, 4, "g1", "cpu=1,gres/gpu=1"))
    figures = characterise(events)
    assert "The nodes of this log are GPUs of nodes that jobs share, and node-hours are GPU-hours." in str(figures)
    assert figures.to_dict()["unit"] == "gpu"
    write_events(events, tmp_path / "e.csv")
    assert load_events(tmp_path / "e.csv").metadata.unit == "gpu"


def test_nodes_have_the_names_that_node_names_gives_them(tmp_path):
    log = written(tmp_path, "jobs.psv", HEADER, slurm_row(1, 0, 4, "g1", "cpu=1,gres/gpu=1"))
    units = written(tmp_path, "u.csv", "node,gpus", "g1.hpc.org,2", "g2.hpc.org,1", "g2.other.org,1")
    options = ReadOptions(timezone="UTC", unit="gpu", node_names="short")
    with pytest.raises(InputError, match="become one node by --node-names"):
        ingest(log, "slurm", options, FULL, units=units)
    units = written(tmp_path, "u.csv", "node,gpus", "g1.hpc.org,2", "G1.hpc.org,0")
    events, report = ingest(log, "slurm", options, FULL, units=units)
    assert idle_hours(events) == {"g1/gpu0": 0, "g1/gpu1": 4}
    assert list(report.warnings) == []


def test_more_gpus_than_a_node_has_are_not_those_of_the_next_node(tmp_path):
    lists = "exec_vnode=(g1:ncpus=1:ngpus=6)"
    log = written(tmp_path, "20240301", pbs_line("E", 1, 0, 4, lists))
    events, report = ingest(log, "pbs", ReadOptions(unit="gpu"), FULL, units=written(tmp_path, "u.csv", TABLE))
    assert sum(idle_hours(events).values()) == 4 * 4
    assert (report.warnings[OVER].count, report.warnings[OVER].node_hours) == (1, 2 * 4)


def test_a_wide_job_may_lack_units_on_each_of_its_nodes(tmp_path):
    rows = (
        slurm_row(1, 0, 2, "n[1-3000]", "cpu=1,gres/gpu=3000"),
        slurm_row(2, 1, 3, "n[1-3000]", "cpu=1,gres/gpu=3000"),
    )
    events, report = gpus(tmp_path, *rows, slurm_row(3, 3, 4, "n1", "gres/gpu=1"), table="node,gpus\nn[1-3000],1\n")
    assert characterise(events).idle_node_us == 2999 * HOUR_US
    assert report.warnings[OVER].node_hours == 3000


def test_reserved_nodes_are_all_their_units(tmp_path):
    log = written(tmp_path, "jobs.psv", HEADER, slurm_row(1, 0, 4, "g1", "cpu=1,gres/gpu=1"))
    reservation = "hill|lecture|2024-03-01T01:00:00|2024-03-01T03:00:00|g2|"
    reserved = written(tmp_path, "resv.psv", "Cluster|Name|Start|End|NodeNames|Flags", reservation)
    units = written(tmp_path, "u.csv", TABLE)
    _, report = ingest([log, reserved], "slurm", ReadOptions(timezone="UTC", unit="gpu"), FULL, units=units)
    assert report.warnings[RESERVED_IDLE].node_hours == 4 * 2
    options = ReadOptions(timezone="UTC", unit="gpu", reservations="reserved")
    events, _ = ingest([log, reserved], "slurm", options, FULL, units=units)
    assert sum(idle_hours(events).values()) == 4 * 3 + 4 * 2


def test_a_job_without_a_list_of_nodes_is_skipped_and_counted(tmp_path):
    row = slurm_row(2, 0, 2, "g1", "cpu=1,gres/gpu=1").replace("|g1|", "||")
    _, report = gpus(tmp_path, slurm_row(1, 0, 4, "g1", "cpu=1,gres/gpu=1"), row)
    assert report.skipped[NO_LIST].count == 1


def test_a_pbs_job_keeps_the_units_of_its_start(tmp_path):
    lists = "exec_vnode=(g1:ncpus=1:ngpus=3)"
    lines = pbs_line("S", 1, 0, 4, lists), pbs_line("E", 1, 0, 4, "resources_used.ncpus=1")
    log = written(tmp_path, "20240301", *lines)
    events, _ = ingest(log, "pbs", ReadOptions(unit="gpu"), FULL, units=written(tmp_path, "u.csv", TABLE))
    assert sum(idle_hours(events).values()) == 4 * 5


def test_hosts_that_are_one_node_hold_it_whole(tmp_path):
    lists = "exec_host=g1.a/0*2+g1.b/0*2"
    log = written(tmp_path, "20240301", pbs_line("E", 1, 0, 4, lists))
    options = ReadOptions(unit="core", node_names="short")
    events, report = ingest(log, "pbs", options, FULL, units=written(tmp_path, "u.csv", TABLE))
    assert sum(idle_hours(events).values()) == 4 * 32
    assert report.warnings[UNKNOWN].count == 1


def test_no_unit_is_held_by_two_batch_jobs_at_a_time(tmp_path):
    jobs, units = generated(np.random.default_rng(4), n_jobs=400, n_nodes=6, n_units=4)
    lines = []
    for number, (start, end, per_node) in enumerate(jobs):
        vnodes = "+".join(f"({node}:ngpus={min(n_held, 4)})" for node, n_held in per_node.items())
        lines.append(pbs_line("E", number, start / 3_600, end / 3_600, f"exec_vnode={vnodes}").replace(".0 ", " "))
    table = written(tmp_path, "units.csv", "node,gpus", *(f"{node},{number}" for node, number in units.items()))
    read = read_log(written(tmp_path, "acct", *lines), "pbs", ReadOptions(unit="gpu"), units=table, job_names=True)
    built = read.build(FULL)
    built.write_batch_jobs(tmp_path / "b.parquet")
    held = load_batch_jobs(tmp_path / "b.parquet", built.events)
    owner = np.repeat(np.arange(len(held)), held.n_nodes)
    order = np.lexsort((held.start_us[owner], held.node))
    is_same = np.diff(held.node[order]) == 0
    assert OVER in built.report.warnings
    assert (held.start_us[owner][order][1:][is_same] >= held.end_us[owner][order][:-1][is_same]).all()
    span_us = (built.events.window_end_us - built.events.window_start_us) * len(built.events.nodes)
    busy_us = int(((held.end_us - held.start_us)[owner]).sum())
    assert characterise(built.events).idle_node_us == span_us - busy_us


def test_free_units_of_half_used_nodes_are_no_sign_of_jobs_that_are_missing(tmp_path):
    times = [(f"2024-03-{day:02d}T00:00:00", f"2024-03-{day + 1:02d}T00:00:00") for day in range(1, 11)]
    table = "node,gpus,cores\ng1,4,16\n"
    for nodes, is_warned in (("g1", False), ("g1 g2", True)):  # g2 is idle to the end as a whole
        rows = [
            f"{day}{node[1]}|COMPLETED|{start}|{end}|1|{node}|cpu=4,gres/gpu=1"
            for node in nodes.split()
            for day, (start, end) in enumerate(times if node == "g1" else times[:1])
        ]
        _, report = gpus(tmp_path, *rows, table=table + ("g2,4,16\n" if is_warned else ""))
        assert (findings.NO_RUNNING_JOBS in report.warnings) is is_warned
