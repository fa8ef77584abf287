"""Snapshots of nodes kept by hand: one file a poll, or several in one file, to events with all states apart."""

import json
import os
import tarfile

import pytest

from bfreplay.datasets.ingest import node_snapshots, sampled_states
from bfreplay.datasets.ingest.log_file import LogFile
from bfreplay.datasets.ingest.occupancy.rules import OccupancyRules
from bfreplay.datasets.ingest.read_log import ingest
from bfreplay.datasets.ingest.reader import ReadOptions
from bfreplay.datasets.log.states import STATE_WORDS
from bfreplay.datasets.snapshots.state_table import StateTable
from bfreplay.errors import InputError

T = 1_795_908_000  # 2026-11-28 23:20:00 UTC
EVERYTHING = OccupancyRules(min_gap_s=0)


def slurm(**states):
    """Return the output of scontrol show node -o; a state may end with @ and when the node was last busy."""
    lines = []
    for node, raw in states.items():
        state, _, last_busy = raw.partition("@")
        lines.append(
            f"NodeName={node} Arch=x OS=Linux State={state} Partitions=p LastBusyTime={last_busy or 'Unknown'} \n"
        )
    return "".join(lines)


def kept(folder, polls, name="nodes.{}.txt"):
    """Write one file a poll: seconds after T -> text."""
    for second, text in polls.items():
        (folder / name.format(T + second)).write_text(text)
    return folder


def read(paths, reader="auto", **options):
    """Return rows (seconds after T, node, word), the snapshot of the start first, and the report."""
    events, report = ingest(paths, reader, ReadOptions(**options), EVERYTHING)
    rows = [
        (int(time_us) / 1e6 - T, events.nodes[node], STATE_WORDS[state])
        for batch in events.batches()
        for time_us, node, state in zip(batch.time_us, batch.node, batch.state, strict=True)
    ]
    return rows, report


POLLS = {
    0: slurm(n1="IDLE", n2="ALLOCATED", n3="IDLE+MAINTENANCE"),
    60: slurm(n1="IDLE+PLANNED", n2=f"IDLE@{T + 41}", n3="IDLE+RESERVED"),
    120: slurm(n1="ALLOCATED", n2="IDLE+COMPLETING", n3="IDLE+DRAIN"),
    180: slurm(n1="ALLOCATED", n2="IDLE", n3="IDLE+DRAIN"),
}
ROWS = [
    (0, "n1", "idle"),
    (0, "n2", "busy"),
    (0, "n3", "maintenance"),
    (41, "n2", "idle"),
    (60, "n1", "planned"),
    (60, "n3", "reserved"),
    (120, "n1", "busy"),
    (120, "n2", "completing"),
    (120, "n3", "drain"),
    (180, "n2", "idle"),
]


def test_states_stay_apart_and_have_the_times_that_the_scheduler_tells(tmp_path):
    rows, report = read(kept(tmp_path, POLLS))
    assert rows == ROWS
    assert report.kept["snapshots"] == report.rows_read == 4
    assert not report.warnings
    assert "scontrol show node" in report.facts["recognised"][0]


@pytest.mark.parametrize("mark", ["{}\n", "# {}\n", "#{}.5\n"])
def test_one_file_may_hold_all_polls_below_their_times(tmp_path, mark):
    text = "".join(mark.format(T + second) + poll for second, poll in POLLS.items())
    (tmp_path / "all.txt").write_text(text)
    late = 0.5 if ".5" in mark else 0
    rows, report = read(tmp_path / "all.txt")
    assert rows == [(time if time == 41 else time + late, node, word) for time, node, word in ROWS]
    assert not report.warnings


def test_a_time_without_a_snapshot_is_one_that_cannot_be_used(tmp_path):
    polls = {**POLLS, 60: ""}
    (tmp_path / "all.txt").write_text("".join(f"{T + second}\n{poll}" for second, poll in polls.items()))
    rows, report = read(tmp_path / "all.txt")
    assert [row for row in rows if row[0] in (41, 60)] == []
    assert report.warnings[node_snapshots.UNUSABLE].count == 1


def test_a_snapshot_without_an_end_is_refused_before_memory_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(node_snapshots, "_LARGEST", 1_000)
    with pytest.raises(InputError, match="a snapshot is too large"):
        read(kept(tmp_path, {0: POLLS[0], 60: POLLS[60] * 9}))


def test_what_has_no_beginning_of_its_own_is_read_if_named(tmp_path):
    polls = {0: "n1 idle\nn2 busy\n", 60: f"n1 idle\nn2 idle {T + 30}\n"}
    rows, _ = read(kept(tmp_path, polls), "snapshots")
    assert rows == [(0, "n1", "idle"), (0, "n2", "busy"), (30, "n2", "idle")]


def test_snapshots_of_pbs_and_of_json_are_recognised(tmp_path):
    pbs = "n1\n     ntype = PBS\n     state = {}\n\n"
    (tmp_path / "pbs").mkdir()
    rows, _ = read(kept(tmp_path / "pbs", {0: pbs.format("free"), 60: pbs.format("job-exclusive")}))
    assert rows == [(0, "n1", "idle"), (60, "n1", "busy")]
    (tmp_path / "json").mkdir()
    documents = {
        second: json.dumps({"meta": {}, "nodes": [{"name": "n1", "state": state}]})
        for second, state in ((0, ["IDLE"]), (60, ["IDLE", "PLANNED"]))
    }
    assert read(kept(tmp_path / "json", documents))[0] == [(0, "n1", "idle"), (60, "n1", "planned")]


@pytest.mark.parametrize("name", ["{}.txt", "nodes-{}", "n01.{}.gz.txt", "{}.25.json"])
def test_seconds_in_the_name_are_the_time(tmp_path, name):
    late = 0.25 if ".25" in name else 0
    rows, report = read(kept(tmp_path, {0: slurm(n1="IDLE"), 60: slurm(n1="DOWN")}, name))
    assert rows == [(late, "n1", "idle"), (60 + late, "n1", "down")]
    assert not report.warnings


def dated(folder, *stamps):
    for stamp, state in zip(stamps, ("IDLE", "DOWN"), strict=True):
        (folder / f"nodes-{stamp}.txt").write_text(slurm(n1=state))
    return folder


@pytest.mark.parametrize(
    ("stamps", "zone"),
    [
        (("2026-11-28T23:20:00Z", "2026-11-28T23:21:00Z"), None),
        (("20261128T232000Z", "20261128T232100Z"), None),
        (("20261129-002000", "20261129-002100"), "Europe/Paris"),
        (("2026-11-29_00.20.00", "2026-11-29_00.21.00"), "Europe/Paris"),
        (("20261128232000", "20261128232100"), "UTC"),
    ],
)
def test_a_date_in_the_name_is_the_time(tmp_path, stamps, zone):
    assert read(dated(tmp_path, *stamps), timezone=zone)[0] == [(0, "n1", "idle"), (60, "n1", "down")]


def test_a_local_date_needs_a_zone_and_may_not_come_twice(tmp_path):
    with pytest.raises(InputError, match="has no zone"):
        read(dated(tmp_path, "20261025-023000", "20261025-033000"))
    with pytest.raises(InputError, match="is not one moment in Europe/Paris"):
        read(tmp_path, timezone="Europe/Paris")


def test_without_a_time_in_the_name_the_last_change_is_used_with_a_warning(tmp_path):
    for k, state in enumerate(("IDLE", "DOWN")):
        file = tmp_path / f"poll{k}.txt"
        file.write_text(slurm(n1=state))
        os.utime(file, (T + 60 * k, T + 60 * k))
    rows, report = read(tmp_path)
    assert rows == [(0, "n1", "idle"), (60, "n1", "down")]
    assert report.warnings[node_snapshots.BY_FILE_TIME].count == 2
    with tarfile.open(tmp_path / "polls.tar", "w") as archive:
        archive.add(tmp_path / "poll0.txt", "poll0.txt")
    with pytest.raises(InputError, match="a file in an archive has no time in its name"):
        read(tmp_path / "polls.tar")


def test_a_gap_of_more_than_three_periods_is_unknown_and_three_are_not(tmp_path):
    up, down = slurm(n1="IDLE", n2="ALLOCATED"), slurm(n1="ALLOCATED", n2="ALLOCATED")
    rows, report = read(kept(tmp_path, {0: up, 60: up, 120: up, 300: up, 360: up, 541: down}))
    assert rows == [
        (0, "n1", "idle"),
        (0, "n2", "busy"),
        (420, "n1", "unknown"),
        (420, "n2", "unknown"),
        (541, "n1", "busy"),
        (541, "n2", "busy"),
    ]
    assert report.warnings[sampled_states.GAPS].count == 1
    assert report.warnings[sampled_states.GAPS].node_hours == pytest.approx(2 * 121 / 3600)


def test_a_node_that_is_missing_or_appears_is_unknown_there_with_a_warning(tmp_path):
    both, one = slurm(n1="IDLE", n2="IDLE"), slurm(n1="IDLE")
    rows, report = read(kept(tmp_path, {0: one, 60: both, 120: one, 180: one, 240: both}))
    assert rows == [
        (0, "n1", "idle"),
        (0, "n2", "unknown"),
        (60, "n2", "idle"),
        (120, "n2", "unknown"),
        (240, "n2", "idle"),
    ]
    assert report.warnings[sampled_states.MISSING].node_hours == pytest.approx(3 * 60 / 3600)


def test_a_snapshot_that_is_cut_or_an_error_or_late_is_skipped_with_a_warning(tmp_path):
    polls = dict(POLLS)
    polls[60] = polls[60][:-1]
    polls[120] = "NodeName=slurm_load_node error: Unable to contact slurm controller\n"
    rows, report = read(kept(tmp_path, polls))
    assert rows == [*ROWS[:3], (180, "n1", "busy"), (180, "n2", "idle"), (180, "n3", "drain")]
    assert report.warnings[node_snapshots.UNUSABLE].count == report.rows_skipped == 2
    (tmp_path / f"again.{T}.txt").write_text(slurm(n1="DOWN"))
    assert read(tmp_path)[1].rows_skipped == 3


def test_a_strange_word_is_a_warning_and_the_node_unknown_unless_a_table_has_it(tmp_path):
    folder = tmp_path / "polls"
    folder.mkdir()
    kept(folder, {0: slurm(n1="IDLE"), 60: slurm(n1="IDLE+QUANTUM")})
    rows, report = read(folder)
    assert rows == [(0, "n1", "idle"), (60, "n1", "unknown")]
    assert report.warnings[node_snapshots.STRANGE].examples[0].value == "quantum in IDLE+QUANTUM"
    table = tmp_path / "states.toml"
    table.write_text(StateTable.default().to_text().replace('words = "planned', 'words = "quantum planned'))
    rows, report = read(folder, states=str(table))
    assert rows == [(0, "n1", "idle"), (60, "n1", "planned")]
    assert not report.warnings


def test_one_snapshot_is_no_log(tmp_path):
    kept(tmp_path, {0: slurm(n1="IDLE")})
    with pytest.raises(InputError, match="the output of scontrol show node, once") as error:
        read(tmp_path)
    assert "scontrol show node -o" in error.value.fix
    kept(tmp_path, {60: "error\n", 120: "error\n"})
    with pytest.raises(InputError, match="this is no snapshot"):
        read(sorted(tmp_path.iterdir()), "snapshots")


def test_what_is_no_snapshot_is_not_recognised(tmp_path):
    for text in ('{"jobs": [{"nodes": "n1"}]}', '{"jobs": [{"x": 1}], "nodes": []}', "n1 idle\n", "1795908000\n"):
        (tmp_path / "x").write_text(text)
        assert node_snapshots.SnapshotsReader().recognise(LogFile(tmp_path / "x")) is None
