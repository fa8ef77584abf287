"""Texts of schedulers about nodes and jobs: recognised by their content, read whole or refused."""

import json
from datetime import timedelta, timezone

import pytest

from bfreplay.datasets.log.states import NodeState
from bfreplay.datasets.snapshots.readings import JobReading
from bfreplay.datasets.snapshots.texts import LINES, PBS_JSON, PBSNODES, SCONTROL, SLURM_JSON, SnapshotReader, kind_of
from bfreplay.datasets.times import US
from bfreplay.errors import InputError

T = 1795908039


def slurm_node(name, state, *, last_busy=T, partitions="batch,idle", reason=""):
    return (
        f"NodeName={name} Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 CPUTot=1 OS=Linux 6.1 #1 SMP  RealMemory=100 "
        f"Sockets=1 State={state} ThreadsPerCore=1 Owner=N/A Partitions={partitions}  BootTime=None "
        f"LastBusyTime={last_busy} CfgTRES=cpu=1 AllocTRES= " + (f"Reason={reason} [root@{T}]" if reason else "") + "\n"
    )


SLURM = slurm_node("n01", "IDLE+PLANNED") + slurm_node("n02", "ALLOCATED", reason="x State=IDLE Partitions=p")
SLURM_LONG = """\
NodeName=n01 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=0 CPUTot=1 CPULoad=0.30
   State=IDLE+PLANNED ThreadsPerCore=1 TmpDisk=0
   Partitions=batch,idle
   BootTime=None SlurmdStartTime=None
   LastBusyTime=2026-11-28T23:20:39 ResumeAfterTime=None

NodeName=n02 Arch=x86_64 CoresPerSocket=1
   State=ALLOCATED ThreadsPerCore=1
   Partitions=batch,idle
   LastBusyTime=2026-11-28T23:20:39
   Reason=bad disk [root@2026-11-28T23:00:00]

"""
OLD_JSON = {
    "nodes": [
        {"name": "n01", "state": "idle", "state_flags": ["PLANNED"], "partitions": ["batch", "idle"], "last_busy": T},
        {"name": "n02", "state": "allocated", "state_flags": [], "partitions": ["batch", "idle"], "last_busy": T},
    ]
}
NEW_JSON = {
    "nodes": [
        {
            "name": "n01",
            "state": ["IDLE", "PLANNED"],
            "partitions": ["batch", "idle"],
            "last_busy": {"set": True, "number": T},
        },
        {
            "name": "n02",
            "state": ["ALLOCATED"],
            "partitions": ["batch", "idle"],
            "last_busy": {"set": False, "number": 0},
        },
    ]
}
SINFO_JSON = {
    "sinfo": [
        {"node": {"state": state}, "nodes": {"nodes": [name]}, "partition": {"name": partition}, "reason": {}}
        for partition in ("batch", "idle")
        for name, state in (("n01", ["IDLE", "PLANNED"]), ("n02", ["ALLOCATED"]))
    ]
}


@pytest.mark.parametrize(
    ("text", "has_time"),
    [(SLURM, True), (json.dumps(OLD_JSON), True), (json.dumps(NEW_JSON), True), (json.dumps(SINFO_JSON), False)],
    ids=["one line", "old json", "new json", "sinfo json"],
)
def test_the_forms_of_slurm_say_the_same(text, has_time):
    nodes = SnapshotReader().nodes(text)
    assert [(node, reading.raw, reading.state) for node, reading in nodes.items()] == [
        ("n01", "IDLE+PLANNED", NodeState.PLANNED),
        ("n02", "ALLOCATED", NodeState.BUSY),
    ]
    assert all(reading.partitions == ("batch", "idle") for reading in nodes.values())
    assert nodes["n01"].since_us == (T * US if has_time else None)
    assert nodes["n02"].since_us is None  # when a busy node was last busy says nothing


def test_the_form_of_slurm_on_several_lines_has_local_times_that_need_a_zone():
    nodes = SnapshotReader().nodes(SLURM_LONG)
    assert {node: (reading.raw, reading.partitions, reading.since_us) for node, reading in nodes.items()} == {
        "n01": ("IDLE+PLANNED", ("batch", "idle"), None),
        "n02": ("ALLOCATED", ("batch", "idle"), None),
    }
    assert nodes["n02"].reason == "bad disk [root@2026-11-28T23:00:00]"
    east = SnapshotReader(zone=timezone(timedelta(hours=1))).nodes(SLURM_LONG)
    assert east["n01"].since_us == (T - 3600) * US


def test_a_reason_cannot_change_the_state_even_with_line_ends():
    text = slurm_node("n01", "DOWN", reason="x y=z State=IDLE Partitions=p\nand more") + slurm_node("n02", "IDLE")
    nodes = SnapshotReader().nodes(text)
    assert [reading.raw for reading in nodes.values()] == ["DOWN", "IDLE"]
    assert nodes["n01"].reason == f"x y=z State=IDLE Partitions=p and more [root@{T}]"


def test_a_second_poll_reads_what_changed_and_forgets_what_is_gone():
    reader = SnapshotReader()
    first = reader.nodes(SLURM)
    second = reader.nodes(slurm_node("n01", "IDLE") + SLURM.splitlines(keepends=True)[1])
    assert (first["n01"].state, second["n01"].state) == (NodeState.PLANNED, NodeState.IDLE)
    assert second["n02"] is first["n02"]
    assert list(reader.nodes(slurm_node("n01", "IDLE"))) == ["n01"]
    assert len(reader._slurm_nodes) == 1  # memory does not grow from poll to poll


def test_pbsnodes_say_busy_for_a_free_node_with_jobs():
    text = (
        "n1\n     Mom = n1.ex\n     ntype = PBS\n     state = free\n     queue = gpu\n\n"
        "n2\n     Mom = n2.ex\n     state = free\n     jobs = 12.s/0, 13.s/1\n     status = a=b,state=free\n\n"
        "n3\n     Mom = n3.ex\n     state = down,offline\n     comment = disk\n\n"
    )
    nodes = SnapshotReader().nodes(text)
    assert [(reading.raw, reading.state.name) for reading in nodes.values()] == [
        ("free", "IDLE"),
        ("free,has-jobs", "BUSY"),
        ("down,offline", "DOWN"),
    ]
    assert (nodes["n1"].partitions, nodes["n3"].reason) == (("gpu",), "disk")
    document = {
        "timestamp": T,
        "pbs_version": "2022.1",
        "nodes": {
            "n1": {"state": "free", "queue": "gpu", "last_state_change_time": T},
            "n2": {"state": "free", "jobs": ["12.s"], "last_state_change_time": T},
            "n3": {"state": "down,offline", "comment": "disk"},
        },
    }
    of_json = SnapshotReader().nodes(json.dumps(document))
    assert [reading.state for reading in of_json.values()] == [reading.state for reading in nodes.values()]
    assert of_json["n1"].since_us == T * US
    assert of_json["n2"].since_us is None  # since when it has jobs is another time


def test_plain_lines_have_blanks_or_commas_lists_of_nodes_and_times():
    text = (
        "# by hand\nn1 idle\n\nn2,busy,1795908039\nn[3-4] IDLE+DRAIN 2026-11-28T23:20:39Z\nn5, free\nn6 down,offline\n"
    )
    nodes = SnapshotReader().nodes(text)
    assert {node: (reading.state.name, reading.since_us) for node, reading in nodes.items()} == {
        "n1": ("IDLE", None),
        "n2": ("BUSY", T * US),
        "n3": ("DRAIN", T * US),
        "n4": ("DRAIN", T * US),
        "n5": ("IDLE", None),
        "n6": ("DOWN", None),
    }
    assert list(SnapshotReader().nodes("NODE STATE\nn1 idle\n")) == ["n1"]
    signs = SnapshotReader().nodes("n1 idle#\nn2 idle # spare\n#n3 idle\n")
    assert {node: reading.state.name for node, reading in signs.items()} == {"n1": "OFF", "n2": "IDLE"}


def test_a_strange_state_is_unknown_and_its_word_kept():
    reader = SnapshotReader()
    nodes = reader.nodes(slurm_node("n01", "IDLE+QUANTUM") + slurm_node("n02", "IDLE"))
    assert nodes["n01"].state == NodeState.UNKNOWN
    assert reader.states.strange_words == {"quantum": "IDLE+QUANTUM"}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (SLURM, SCONTROL),
        (SLURM_LONG, SCONTROL),
        (json.dumps(OLD_JSON, indent=1), SLURM_JSON),
        (json.dumps(SINFO_JSON), SLURM_JSON),
        ('{"pbs_version": "1", "nodes": {}}', PBS_JSON),
        ("n1\n     Mom = n1\n", PBSNODES),
        ("n1\n     state = free\n", PBSNODES),
        ("n1 idle\n", None),
        ("", None),
        ('{"jobs": []}', None),
    ],
)
def test_a_text_is_recognised_by_its_beginning(text, kind):
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n# nothing\n",
        "slurm_load_node error: Unable to contact slurm controller (connect failure)\n",
        "Node n99 not found\n",
        "bash: scontrol: command not found\n",
        "Segmentation fault\n",
        "\0\0\0\n",
        SLURM[:-1],
        SLURM[: SLURM.index("State=", 200)] + "\n",
        SLURM_LONG[: SLURM_LONG.rindex("   State=")],
        "NodeName=n01\n",
        SLURM + slurm_node("n01", "ALLOCATED"),
        "n1 idle\nn2 id",
        "n1 idle\nn1 busy\n",
        "n1 idle yesterday\n",
        "n[1-  idle\n",
        json.dumps(NEW_JSON)[:-20],
        '{"nodes": [{"name": "n1"}]}',
        '{"nodes": [{"name": "n1", "state": 7}]}',
        '{"nodes": []}',
        '{"nodes": 3}',
        "n1\n     Mom = n1\n     ntype = PBS\n\n",
        "n1\n     state = free\n     Mom = n",
    ],
)
def test_a_text_that_is_no_whole_snapshot_is_refused_with_its_value(text):
    with pytest.raises(InputError) as error:
        SnapshotReader().nodes(text, "scontrol show node -o")
    assert error.value.problem.startswith("this is no snapshot: ")
    assert error.value.file == "scontrol show node -o"
    assert error.value.expected
    assert error.value.fix


def test_a_refusal_names_the_line():
    with pytest.raises(InputError) as error:
        SnapshotReader().nodes("n1 idle\nn2 idle now\n")
    assert (error.value.row, error.value.value) == ("line 2", "n2 idle now")


def test_jobs_of_squeue_have_an_end_only_when_they_have_ended():
    text = (
        f"41|batch|RUNNING|{T}|{T + 3600}|n[01-02]\n42|idle|COMPLETED|{T}|{T + 5}|n03\n"
        f"43|batch|PENDING|{T + 90}|N/A|\n44|batch|CANCELLED|N/A|{T}|\n45|b|SUSPENDED|{T}|{T + 9}|n04\n"
    )
    reader = SnapshotReader()
    jobs = reader.jobs(text)
    assert jobs == (
        JobReading("41", "batch", "RUNNING", T * US, None, ("n01", "n02")),
        JobReading("42", "idle", "COMPLETED", T * US, (T + 5) * US, ("n03",)),
        JobReading("45", "b", "SUSPENDED", T * US, None, ("n04",)),
    )
    assert reader.jobs(text)[0] is jobs[0]
    assert reader.jobs("") == ()


@pytest.mark.parametrize(
    "text",
    [
        f"41|batch|RUNNING|{T}|{T}|n01",
        "slurm_load_jobs error: Unable to contact\n",
        f"41|b|RUNNING|{T}|{T}|n[01-\n",
        "1|2\n",
    ],
)
def test_jobs_that_are_cut_or_none_are_refused(text):
    with pytest.raises(InputError, match="this is no snapshot"):
        SnapshotReader().jobs(text)


def test_no_beginning_of_a_snapshot_is_taken_for_a_whole_one():
    whole = SnapshotReader().nodes(SLURM)
    for length in range(len(SLURM)):
        try:
            nodes = SnapshotReader().nodes(SLURM[:length])
        except InputError:
            continue
        assert set(nodes) < set(whole)  # cut exactly between two nodes: those that are missing are unknown
        assert SLURM[length - 1] == "\n"


def test_the_lines_of_a_log_are_a_kind_of_their_own():
    assert kind_of(f"n1 idle {T}\n") is None
    with pytest.raises(InputError, match=LINES):
        SnapshotReader().nodes("hello\n")


def test_a_job_whose_nodes_are_made_ready_has_no_start_yet():
    (job,) = SnapshotReader().jobs(f"7|batch|CONFIGURING|{T}|{T + 60}|n1\n")
    assert (job.start_us, job.end_us, job.nodes) == (None, None, ("n1",))
