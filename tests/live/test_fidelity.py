"""Predicted against trained: a pilot's log of twenty seconds, worked out by hand; pairs of delays; the sparse load.

Jobs A (140 samples/s on two nodes, 100 on one) and B (50 on one) share three nodes, from the first second on. A start
costs 2 s, a loss of nodes 1 s. Decisions hold 0.3 s after their events. At 10 s a batch job takes a node of A.
"""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bfreplay import InputError, NodeState, write_events

sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "real-slurm"))

import fidelity
import load
import predictions
from pilot_log import PilotLog

T0 = 1_800_000_000
MEASURED = """\
[[job]]
name = "A"
min_nodes = 1
max_nodes = 2
curve = "0:0 1:100 2:140"
start_cost_s = 2
scale_up_cost_s = 2
scale_down_cost_s = 1
restart = "pause"
work_saved_every_s = 10
saves = "on-resize"
work_samples = inf
[[job]]
name = "B"
min_nodes = 1
max_nodes = 1
curve = "0:0 1:50"
start_cost_s = 2
scale_up_cost_s = 2
scale_down_cost_s = 1
restart = "pause"
work_saved_every_s = 10
saves = "on-resize"
work_samples = inf
"""


def decision(at_s, counts, nodes, late_s=0.0):
    return {
        "t": T0 + at_s + late_s,
        "ev": "decision",
        "time_us": round((T0 + at_s) * 1e6),
        "counts": counts,
        "nodes": nodes,
    }


def start(at_s, job, run, nodes):
    return {"t": T0 + at_s, "ev": "start", "job": job, "run": run, "nodes": nodes}


def samples(at_s, job, run, n, **more):
    return {"t": T0 + at_s, "ev": "samples", "job": job, "run": run, "samples": n, "at": T0 + at_s, **more}


def ideal_log():
    """Return a log that went exactly as the model says.

    A: 6.7 s on two nodes, of 3.3 to 10: 938 samples; a second without; 9 s on one: 900. B: 16.7 s: 835.
    """
    return [
        {"t": T0, "ev": "begin", "nodes": ["n1", "n2", "n3"], "policy": "bftrainer", "t_fwd_s": 60, "settle_s": 0.3,
         "jobs": ["A", "B"]},
        *({"t": T0 + 1, "ev": "join", "node": node, "slurm_job": 7} for node in ("n1", "n2", "n3")),
        decision(1.3, {"A": 2, "B": 1}, {"A": ["n1", "n2"], "B": ["n3"]}),
        start(1.3, "A", 1, ["n1", "n2"]),
        start(1.3, "B", 1, ["n3"]),
        samples(3.8, "A", 1, 70),
        samples(3.8, "B", 1, 25),
        {"t": T0 + 10, "ev": "leaving", "node": "n2", "seen": T0 + 10},
        samples(10, "A", 1, 938, saved=True),
        {"t": T0 + 10.1, "ev": "gone", "node": "n2", "told": True},
        decision(10.3, {"A": 1, "B": 1}, {"A": ["n1"], "B": ["n3"]}),
        start(10.3, "A", 2, ["n1"]),
        samples(11.5, "A", 2, 988),
        samples(20, "A", 2, 1838, saved=True),
        samples(20, "B", 1, 835, saved=True),
        {"t": T0 + 20, "ev": "end", "samples": {"A": 1838, "B": 835}},
    ]  # fmt: skip


@pytest.fixture
def repetition(tmp_path):
    """Return a function that makes the folder of a repetition with these lines of the pilot's log."""

    def make(lines, name="rep", every_s=10):
        folder = tmp_path / name
        for part in ("pilot", "accounting", "followed"):
            (folder / part).mkdir(parents=True)
        (folder / "measured.toml").write_text(MEASURED.replace("every_s = 10", f"every_s = {every_s}"))
        (folder / "repetition.json").write_text('{"seed": 1}')
        (folder / "pilot" / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        return folder

    return make


def add_other_feedings(folder):
    """Write the same comings and goings as a follower and as accounting would."""
    made = predictions.Repetition(folder)
    write_events(made.by_workers, folder / "followed" / "log.csv")
    columns = "JobIDRaw|JobID|Cluster|Partition|State|Submit|Eligible|Start|End|NNodes|NodeList\n"
    row = "{0}|{0}|real|{1}|COMPLETED|2027-01-15T07:59:00|2027-01-15T07:59:00|{2}|{3}|{4}|{5}\n"
    rows = [
        row.format(1, "batch", "2027-01-15T07:59:00", "2027-01-15T08:00:01", 3, "n[1-3]"),
        row.format(2, "idle", "2027-01-15T08:00:01", "2027-01-15T08:00:10", 1, "n2"),
        row.format(3, "batch", "2027-01-15T08:00:10", "2027-01-15T08:00:50", 1, "n2"),
    ]
    (folder / "accounting" / "jobs.psv").write_text(columns + "".join(rows))
    (folder / "accounting" / "outages.psv").write_text("Cluster|NodeName|Start|End|State|Reason|User\n")
    (folder / "accounting" / "resv.psv").write_text("Cluster|Name|Start|End|NodeNames|Flags\n")


def parts_of(folder):
    made = predictions.Repetition(folder)
    parts = made.parts(made.predict("workers", "settle"))
    return {part: round(n, 3) + 0.0 for part, n in parts.items()}


def test_trained_is_what_was_made_from_begin_to_end(repetition):
    lines = ideal_log()
    lines[0]["samples"] = {"A": 38}
    assert PilotLog(repetition(lines) / "pilot" / "log.jsonl").trained == {"A": 1800, "B": 835}


@pytest.mark.parametrize(
    ("feeding", "charging", "expected"),
    [
        ("workers", "settle", {"A": 1838, "B": 835}),
        ("decisions", "pause", {"A": 1838, "B": 835}),
        ("workers", "pause", {"A": 7 * 140 + 900, "B": 17 * 50}),  # decided at 1 s, not at 1.3 s
        ("workers", "published", {"A": 9 * 140 + 1000 - 140, "B": 19 * 50}),  # one debt: a second at the rate before
        ("workers", "charge", {"A": 7 * 140 + 1000 - 140, "B": 17 * 50}),
    ],
)
def test_predictions_are_those_worked_out_by_hand(repetition, feeding, charging, expected):
    prediction = predictions.Repetition(repetition(ideal_log())).predict(feeding, charging)
    assert prediction.samples == pytest.approx(expected, abs=0.01)


def test_followed_and_accounted_nodes_give_the_same_where_they_say_the_same(repetition):
    folder = repetition(ideal_log())
    add_other_feedings(folder)
    made = predictions.Repetition(folder, join_s=0.5)
    for feeding in ("followed", "accounting"):
        assert made.predict(feeding, "settle").samples == pytest.approx({"A": 1838, "B": 835}, abs=0.01)
        # a worker joins half a second after its node became idle: both jobs start so much later
        assert made.predict(feeding, "min-age").samples == pytest.approx({"A": 1768, "B": 810}, abs=0.01)


def test_the_window_ends_when_the_pilot_lets_its_jobs_stop_and_its_workers_leave(repetition):
    lines = ideal_log()
    lines.insert(1, decision(-0.2, {"A": 0, "B": 0}, {"A": [], "B": []}, late_s=0.3))  # on no nodes, before the window
    leave = [{"t": T0 + 20.1, "ev": "gone", "node": node, "told": False} for node in ("n1", "n3")]
    late = decision(20.2, {"A": 0, "B": 0}, {"A": [], "B": []})
    lines[-1:] = [{"t": T0 + 20, "ev": "closing"}, *leave, late, lines[-1] | {"t": T0 + 25}]
    made = predictions.Repetition(repetition(lines))
    assert made.log.window_us == (T0 * 1_000_000, (T0 + 20) * 1_000_000)
    assert made.log.told_before_the_end() == (1, 1)
    assert made.predict("decisions", "pause").samples == pytest.approx({"A": 1838, "B": 835}, abs=0.01)
    assert made.decisions_met() == (2, 2)


def test_planned_nodes_of_the_followed_log_count_as_the_pool_says(repetition):
    folder = repetition(ideal_log())
    add_other_feedings(folder)
    log = folder / "followed" / "log.csv"
    log.write_text(log.read_text().replace("08:00:01Z,n3,idle", "08:00:01Z,n3,planned"))
    assert "planned" in log.read_text()
    assert predictions.Repetition(folder).predict("followed", "settle").samples["B"] < 835
    made = predictions.Repetition(folder, pool="idle").predict("followed", "settle")
    assert made.samples == pytest.approx({"A": 1838, "B": 835}, abs=0.01)


def test_all_parts_are_zero_where_the_run_went_as_the_model_says(repetition):
    assert set(parts_of(repetition(ideal_log())).values()) == {0.0}


def test_each_part_has_its_own_cause(repetition):
    zero = dict.fromkeys(predictions.PARTS, 0.0)

    late = ideal_log()
    late[4] = decision(1.3, {"A": 2, "B": 1}, {"A": ["n1", "n2"], "B": ["n3"]}, late_s=0.5)
    late[5], late[6] = start(1.8, "A", 1, ["n1", "n2"]), start(1.8, "B", 1, ["n3"])
    late[7:9] = [samples(4.3, "A", 1, 70), samples(4.3, "B", 1, 25)]
    late[10], late[14:] = samples(10, "A", 1, 868, saved=True), [
        samples(11.5, "A", 2, 918), samples(20, "A", 2, 1768), samples(20, "B", 1, 810),
        {"t": T0 + 20, "ev": "end", "samples": {"A": 1768, "B": 810}}]  # fmt: skip
    assert parts_of(repetition(late, "late")) == zero | {"late decisions": 0.5 * 190}

    slow_start = ideal_log()
    slow_start[8], slow_start[-2] = samples(4.8, "B", 1, 25), samples(20, "B", 1, 785)
    slow_start[-1]["samples"]["B"] = 785
    assert parts_of(repetition(slow_start, "slow")) == zero | {"restarts longer than measured": 50}

    slow_rate = ideal_log()
    slow_rate[-2], slow_rate[-1]["samples"]["B"] = samples(20, "B", 1, 800), 800
    assert parts_of(repetition(slow_rate, "rate")) == zero | {"rate below the curve": 35}

    none_for_a = ideal_log()
    none_for_a[12] = decision(10.3, {"A": 0, "B": 1}, {"A": [], "B": ["n3"]})
    none_for_a[13:16] = []
    none_for_a[-1]["samples"]["A"] = 938
    assert parts_of(repetition(none_for_a, "other")) == zero | {"decisions that differ": 900}

    followed = repetition(ideal_log(), "followed")
    earlier = [(time_us - 500_000, *more) for time_us, *more in PilotLog(followed / "pilot" / "log.jsonl").presence()]
    window_us = (T0 * 1_000_000, (T0 + 20) * 1_000_000)
    write_events(predictions.presence_log(["n1", "n2", "n3"], earlier, window_us), followed / "followed" / "log.csv")
    made = predictions.Repetition(followed)
    assert made.join_delays_s() == [0.5, 0.5, 0.5]
    parts = made.parts(made.predict("followed", "settle"))
    # half a second more of each job at the beginning; the node goes earlier, and A has it and pauses earlier
    assert parts["events that differ"] == pytest.approx(0.5 * 50 + 0.5 * 100)
    assert sum(parts.values()) == pytest.approx(0.5 * 50 + 0.5 * 100)


def test_the_highest_samples_count_where_progress_goes_back_twice(repetition):
    lines = killed_log(700)
    lines[-3:-3] = [start(12, "A", 3, ["n1"]), samples(13, "A", 3, 720)]  # from the same checkpoint, after one step
    log = PilotLog(repetition(lines) / "pilot" / "log.jsonl")
    assert [(run.number, run.highest, run.resumed) for run in log.runs() if run.job == "A"] == [
        (1, 0, 0), (2, 938, 700), (3, 938, 700)]  # fmt: skip


def test_a_job_that_had_no_nodes_starts_when_a_decision_gives_it_some(repetition):
    lines = ideal_log()
    more = [
        {"t": T0 + 12, "ev": "leaving", "node": "n1"},
        {"t": T0 + 12.1, "ev": "gone", "node": "n1"},
        decision(12.3, {"A": 0, "B": 1}, {"A": [], "B": ["n3"]}),
        {"t": T0 + 15, "ev": "join", "node": "n1"},
        decision(15.3, {"A": 1, "B": 1}, {"A": ["n1"], "B": ["n3"]}),
        start(15.4, "A", 3, ["n1"]),
        samples(18, "A", 3, 1100),
    ]
    lines[15:16] = more
    runs = [run for run in PilotLog(repetition(lines) / "pilot" / "log.jsonl").runs() if run.job == "A"]
    assert [(run.kind, round(run.since_s - T0, 3)) for run in runs] == [("start", 1.3), ("down", 10), ("start", 15.3)]


def test_presence_counts_each_coming_and_going_once(repetition):
    made = predictions.Repetition(repetition(ideal_log()))
    assert made.log.presence() == [
        *(((T0 + 1) * 1_000_000, node, True) for node in ("n1", "n2", "n3")),
        ((T0 + 10) * 1_000_000, "n2", False),  # at SIGTERM, not when it was gone
    ]
    before = [(T0 * 1_000_000 - 1, "n2", True), ((T0 + 1) * 1_000_000, "n2", False)]
    log = predictions.presence_log(["n1", "n2"], before, made.log.window_us)
    assert log.first_states().tolist() == [NodeState.BUSY, NodeState.IDLE]


def test_a_decision_gives_no_less_than_a_job_needs_of_what_is_still_there(repetition):
    lines = ideal_log()
    lines[4] = decision(9.9, {"A": 2, "B": 1}, {"A": ["n1", "n2"], "B": ["n3"]}, late_s=0.2)
    lines[9:10], lines[4:5] = [lines[9], lines[4]], []
    made = predictions.Repetition(repetition(lines))
    at_10_1 = [(round((T0 + 10.1) * 1e6), {"A": 1, "B": 1})]
    assert made.decisions(at_session=False)[:1] == at_10_1
    needs_two = predictions.Repetition(made.folder)
    needs_two.jobs = type(made.jobs)([replace(job, min_nodes=2) if job.name == "A" else job for job in made.jobs])
    assert needs_two.decisions(at_session=False)[0][1] == {"A": 0, "B": 1}


def killed_log(resumed):
    """Return the log of a node that is killed at 10 s without a word, so that A goes on from its last checkpoint."""
    lines = [line for line in ideal_log() if line["ev"] != "leaving"]
    lines[9] = samples(10, "A", 1, 938)
    lines[10] = {"t": T0 + 10, "ev": "gone", "node": "n2", "told": False}
    lines.insert(9, samples(8.3, "A", 1, resumed, saved=True))
    lines[-4:] = [samples(11.5, "A", 2, resumed + 50), samples(20, "A", 2, resumed + 900), samples(20, "B", 1, 835)]
    return [*lines, ideal_log()[-1] | {"samples": {"A": resumed + 900, "B": 835}}]


def test_work_lost_at_a_failure_is_a_part(repetition):
    assert parts_of(repetition(killed_log(700)))["work lost at failures"] == 238


def test_checks_pass_on_a_good_log_and_fail_on_one_that_violates_them(repetition):
    good = predictions.Repetition(repetition(ideal_log(), "good"))
    assert good.log.told_before_the_end() == (1, 1)
    assert good.log.went_back(good.jobs) == []
    assert good.decisions_met() == (2, 2)

    killed = predictions.Repetition(repetition(killed_log(700), "killed"))
    assert killed.log.told_before_the_end() == (0, 1)
    (back,) = killed.log.went_back(killed.jobs)
    assert (back.job, back.number, back.samples) == ("A", 2, 938 - 750)
    assert back.samples <= back.allowed < 10 * 140 + 70
    often = predictions.Repetition(repetition(killed_log(700), "often", every_s=1))
    (back,) = often.log.went_back(often.jobs)
    assert back.samples > back.allowed

    told_too_late = ideal_log()
    told_too_late[9], told_too_late[11] = told_too_late[11], told_too_late[9]
    assert PilotLog(repetition(told_too_late, "swapped") / "pilot" / "log.jsonl").told_before_the_end() == (0, 1)

    other = ideal_log()
    other[4]["counts"] = {"A": 1, "B": 1}
    assert predictions.Repetition(repetition(other, "other")).decisions_met() == (1, 2)


@pytest.mark.parametrize(
    ("number", "line", "words"),
    [
        (3, '{"t": 18000', ("line 3", '"t" and "ev"')),
        (3, '{"t": 1.5, "ev": "join"}', ("line 3", "node", "type str")),
        (3, '{"t": "now", "ev": "join", "node": "n1"}', ("line 3", "'now'", "a number")),
        (3, '{"t": NaN, "ev": "join", "node": "n1"}', ("line 3", "nan", "a number")),
        (3, '{"t": 1.5, "ev": "join", "node": "n9"}', ("line 3", "'n9'", "n1, n2, n3")),
        (1, '{"t": 1.5, "ev": "join", "node": "n1"}', ("first line", "begin")),
        (18, '{"t": 1.5, "ev": "join", "node": "n1"}', ("last line", "killed")),
    ],
)
def test_a_broken_line_is_named_with_what_was_expected(repetition, number, line, words):
    file = repetition(ideal_log()) / "pilot" / "log.jsonl"
    lines = file.read_text().splitlines()
    lines[number - 1] = line
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError) as error:
        PilotLog(file)
    for word in (*words, "log.jsonl"):
        assert word in str(error.value)


def test_the_table_shows_shares_parts_and_checks(repetition, tmp_path, capsys):
    folder = repetition(ideal_log())
    add_other_feedings(folder)
    files = ["--json", str(tmp_path / "all.json"), "--picture", str(tmp_path / "progress.png")]
    assert fidelity.main(["table", str(folder), "--recommended", "followed/settle", *files]) == 0
    told = capsys.readouterr().out
    assert "| **recommended** followed | pause + start + settle | 1.000 | 1.000 | 1.000 |" in told
    assert "ok: SIGTERM was seen before the end of 1 of 1 workers" in told
    assert "decisions that the replay of the workers takes: 2 of 2" in told
    figures = json.loads((tmp_path / "all.json").read_text())["repetitions"][0]
    assert figures["predicted"]["workers/pause"] == pytest.approx({"A": 1880, "B": 850}, abs=0.01)
    assert (tmp_path / "progress.png").stat().st_size > 1000
    assert fidelity.main(["table", str(folder)]) == 1  # without --join-s nothing is known of joining
    assert "min-age needs --join-s" in capsys.readouterr().err


def test_pairs_of_batch_jobs_show_the_delay_and_the_replay_which_job_met_a_held_node(repetition, capsys):
    folders = [repetition(ideal_log(), name) for name in ("with", "without")]
    add_other_feedings(folders[0])
    head = "number,job,n_nodes,seconds,submitted,started\n"
    (folders[0] / "accounting" / "batch.csv").write_text(
        f"{head}1,3,1,40,100.0,103.5\n2,4,1,40,200.0,201.0\n3,5,1,40,300,\n"
    )
    (folders[1] / "accounting" / "batch.csv").write_text(
        f"{head}1,8,1,40,150.0,151.0\n2,9,1,40,250.0,250.5\n3,9,1,40,350,350.5\n"
    )
    assert fidelity.main(["delays", "--with", str(folders[0]), "--without", str(folders[1])]) == 0
    told = capsys.readouterr().out
    assert "2 pairs: median 1.50 s, mean 1.50 s, largest 2.50 s" in told
    assert "not started in both: 1" in told
    assert "| with | 1 | 1 | 1 | 5.0 | 5.0 | 5.0 |" in told


def test_a_seed_that_is_there_twice_is_refused(repetition, capsys):
    folders = [str(repetition(ideal_log(), name)) for name in ("one", "two")]
    for folder in folders:
        Path(folder, "accounting", "batch.csv").write_text("number,job,submitted,started\n1,3,100.0,103.5\n")
    assert fidelity.main(["delays", "--with", *folders, "--without", folders[0]]) == 1
    assert "seed 1 is there twice" in capsys.readouterr().err


def test_a_load_ends_the_jobs_of_its_partition_alone(tmp_path):
    cluster, asked = SimpleNamespace(settings={"user": "u", "power_save": []}), []
    cluster.ask = lambda *words, **_: asked.append(words) or ""
    cluster.wait = lambda _event, ready, _limit_s: ready()
    with (tmp_path / "log").open("w") as log:
        load.Load(cluster, log, 1).cancel()
    assert {words[0] for words in asked} == {"scancel", "squeue"}
    assert all("--partition=batch" in words for words in asked)


def test_a_sparse_load_depends_on_its_seed_alone():
    jobs = load.sparse_jobs(3, 10)
    assert jobs == load.sparse_jobs(3, 10) != load.sparse_jobs(4, 10)
    assert load.sparse_jobs(3, 5) == [job for job in jobs if job.at_s < 300]
    for seed in range(20):
        jobs = load.sparse_jobs(seed, 10)
        assert 9 <= len(jobs) <= 17
        assert all(1 <= job.n_nodes <= 5 and 40 <= job.seconds <= 150 for job in jobs)
        assert all(35 <= later.at_s - job.at_s <= 65 for job, later in itertools.pairwise(jobs))
