"""``compare_rules`` from files to the record, and its sentences and picture."""

import msgspec
import pytest

from bfreplay import InputError, compare_rules, load_events, load_jobs, write_events
from bfreplay.bounds import upper_bound
from bfreplay.datasets.log.events import with_node_types
from bfreplay.experiments.rule_comparison import GRIDS, RuleGrid, settings_to_try
from bfreplay.experiments.rule_text import answer_of, notes
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep import run_sweep
from bfreplay.policies.spec import TermSpec
from bfreplay.report.figures.rules import hours_by_label, page, shown_runs
from bfreplay.result_folders.rules import RuleComparison
from bfreplay.runs.rule_tables import rule_table
from tests.campaigns.small_campaigns import source
from tests.experiments.sweep.small_sweeps import Inline
from tests.experiments.tuning.little_logs import JOBS, START, write_jobs, write_log

RULE = "products.scavenger"
COSTS = {"restart_cost": 60.0, "work_saved_every": 600.0, "saves": "never"}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    monkeypatch.setitem(GRIDS, RULE, RuleGrid({"size": (None, 1, 2, 4)}))
    write_log(tmp_path / "events.csv")
    write_jobs(tmp_path / "jobs.csv")
    return tmp_path


def found(**given):
    return compare_rules("events.csv", "jobs.csv", **{"rules": ["scavenger"], "max_parallel": 2} | given)


def alone(**given):
    own = {"t_fwd": 150.0, "max_parallel": 2, "efficiency": False, "bound": False, **COSTS}
    return RunOptions(events="events.csv", jobs="jobs.csv", unlimited_work=True, **own | given).run()


def test_every_figure_is_that_of_the_run_by_itself_over_the_bound(files):
    record = found(count="samples").record
    assert [run.policy for run in record.rules] == [RULE, f"{RULE}(size=1)", f"{RULE}(size=2)"]
    assert [run.policy for run in record.yardsticks] == ["bftrainer", "reclaim-aware"]
    log = load_events("events.csv")
    bound = upper_bound(log, load_jobs("jobs.csv").endless(2, log.window_start_us), 2).free_rescaling_samples
    assert sum(record.bound_samples) == pytest.approx(bound)
    for run in [*record.rules, *record.yardsticks]:
        summary = alone(policy=run.policy).summary
        assert sum(run.samples) == pytest.approx(summary.ledger.samples)
        assert run.share == pytest.approx(summary.ledger.samples / bound)
        assert run.node_hours == summary.ledger.node_hours.to_json()
        assert run.n_changes == summary.n_scale_ups + summary.n_scale_downs + summary.n_preemptions > 0
        assert run.delay_node_hours == summary.batch_starts.delay_node_hours > 0


def test_the_first_half_is_a_run_that_ends_in_the_middle(files):
    window = (START, "2024-05-01T01:30:00")
    for run in found(count="samples").record.rules:
        assert run.samples[0] == pytest.approx(alone(policy=run.policy, window=window).summary.ledger.samples)


def test_speed_up_counts_seconds_of_one_node(files):
    """On one node each, always idle, two jobs make two samples a second but for one pause of 60 s each."""
    record = found().record
    one_node = next(run for run in record.rules if run.setting == "size=1")
    assert sum(one_node.samples) == pytest.approx(2 * (3 * 3600 - 60))
    assert record.job_hours == 6.0


def test_settings_that_cannot_differ_are_tried_once(monkeypatch):
    jobs = load_jobs("sample")[:2]  # at most 64 and 16 nodes
    assert [str(term) for term in settings_to_try(RULE, jobs).values()][1:] == [f"{RULE}(size={n})" for n in (4, 8, 16)]
    wide = load_jobs("sample")[6:7]  # 4 to 16 nodes
    assert [str(term) for term in settings_to_try(RULE, wide).values()] == [RULE, f"{RULE}(size=4)", f"{RULE}(size=8)"]
    monkeypatch.setitem(GRIDS, RULE, RuleGrid({"size": (None, 1, 2, 4)}))
    assert [str(term) for term in settings_to_try(RULE, wide).values()] == [RULE, f"{RULE}(size=1)"]
    monkeypatch.delitem(GRIDS, RULE)  # as a rule that has no settings of its own
    expected = [RULE, f"{RULE}(max_nodes=8)", f"{RULE}(max_nodes=16)"]
    assert [str(term) for term in settings_to_try(RULE, jobs).values()] == expected
    yours = TermSpec(RULE, (("requeue_s", 120), ("size", 8)))
    assert [*settings_to_try(RULE, jobs, yours).values()][-1] == yours


def test_costs_are_the_users_else_the_rules_else_those_of_all(files, monkeypatch):
    monkeypatch.setitem(GRIDS, RULE, RuleGrid({}, {"restart_cost": 10.0, "saves": "on-resize"}))
    record = found().record
    assert record.config.costs == {
        RULE: COSTS | {"restart_cost": 10.0, "saves": "on-resize"},
        "bftrainer": COSTS,
        "reclaim-aware": COSTS,
    }
    assert f"{RULE} changes cheaply by design: 10 s, saves: on-resize." in record.notes
    record = found(restart_cost=30, work_saved_every=0).record
    assert record.config.costs[RULE] == {"restart_cost": 30.0, "work_saved_every": 0.0, "saves": "never"}
    assert "pauses a job for 30 s, and no work is lost." in record.notes[0]


def test_the_same_call_resumes(files, monkeypatch):
    record = found(out="out").record
    text = (files / "out" / "rules.json").read_bytes()
    (files / "out" / "rules.json").unlink()  # as if killed
    monkeypatch.setattr(run_sweep, "ProcessExecutor", None)  # all runs are there
    assert found(out="out").record == record == RuleComparison.load("out").record
    assert (files / "out" / "rules.json").read_bytes() == text
    assert RuleComparison.load("out").table["node_hours.useful"].tolist()[0] == record.rules[0].node_hours["useful"]


@pytest.fixture
def record(files):
    """46 % at the defaults; 60 % with size 1; size 2, the best of the first half, loses three points on the second."""
    shares = [(0.46, (0.4, 0.52)), (0.6, (0.5, 0.7)), (0.5, (0.51, 0.49)), (0.66, (0.66, 0.66)), (0.71, (0.7, 0.72))]
    record = found().record
    runs = [
        msgspec.structs.replace(run, share=share, half_shares=halves)
        for run, (share, halves) in zip([*record.rules, *record.yardsticks], shares, strict=True)
    ]
    return msgspec.structs.replace(record, rules=runs[:3], yardsticks=runs[3:])


def test_the_answer_says_what_was_reached_and_what_choosing_on_the_first_half_gains(record):
    assert answer_of(record) == (
        "On this log products.scavenger at its defaults reaches 46 % of the upper bound where reclaim-aware reaches "
        "71 %; size=1 (the best of 3 settings tried on this log) reaches 60 %. Chosen on the first half, size=2 loses "
        "3 points on the second."
    )
    row = rule_table(record).rows[0]
    assert row[:4] == [RULE, 0.46, 0.6, pytest.approx(-3.0)]
    assert row[-3:] == [3, "size=1", "size=2"]
    other = msgspec.structs.replace(record.rules[0], rule="products.other", share=0.5)
    several = msgspec.structs.replace(record, rules=[*record.rules, other])
    assert "products.other at its defaults, the best of 2 rules there, reaches 50 %" in answer_of(several)
    assert "products.scavenger(size=1) (the best of 4 settings tried on this log)" in answer_of(several)


def test_the_answer_speaks_of_the_users_setting(record, files):
    config = msgspec.structs.replace(record.config, yours=f"{RULE}(size=1)")
    answer = answer_of(msgspec.structs.replace(record, config=config))
    assert answer.startswith("On this log products.scavenger(size=1), your setting, reaches 60 % of the upper bound")
    assert "no other of the 3 settings tried on this log reaches more." in answer
    assert found(yours="scavenger(size=4)").record.config.yours == RULE  # which means the same to these jobs


def test_the_picture_has_each_rule_at_its_defaults_and_at_its_best_and_the_yardsticks(record):
    runs = shown_runs(record)
    assert [*runs] == ["scavenger", "scavenger(size=1)", "bftrainer", "reclaim-aware"]
    for label, hours in hours_by_label(runs).items():
        assert sum(hours.part.values()) == hours.idle > 0, label
    traces = page(runs).traces
    assert [(trace["x"], trace["y"]) for trace in traces] == [
        ([46.0], ["scavenger"]),
        ([60.0], ["scavenger(size=1)"]),
        ([66.0, 71.0], ["bftrainer", "reclaim-aware"]),
    ]


def test_a_log_without_batch_starts_has_no_known_delay(record):
    runs = [msgspec.structs.replace(run, delay_node_hours=None) for run in record.rules]
    assert notes(msgspec.structs.replace(record, rules=runs))[-1].startswith("The delay of batch jobs is unknown")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rules": ["rya"]}, "scavenger"),
        ({"yours": "bftrainer"}, "scavenger"),
        ({"yours": "products.scavenger(sise=4)"}, "sise"),
        ({"count": "jobs"}, "speed-up"),
        ({"cluster": "v100=2"}, "compare_rules has no option 'cluster'"),
        ({"semantics": "published"}, "compare_rules has no option 'semantics'"),
        ({"node_type": "v100", "jobs": "gavel(n=3)", "curves": "sample"}, "share nodes"),
        ({"events": "two.parquet"}, "several types"),
        ({"jobs": "wide.csv"}, "no job can run on the idle nodes"),
        ({"jobs": source()}, "a campaign cannot have unlimited work"),
    ],
)
def test_what_cannot_be_compared_is_refused(files, given, message):
    log = load_events("events.csv")
    write_events(with_node_types(log, {"a": ["n1", "n2"], "b": ["n3"]}), "two.parquet")
    (files / "wide.csv").write_text(f"{JOBS.splitlines()[0]}\nwide,4,4,10,5,5000,0:0 4:60\n")  # three nodes at most
    with pytest.raises(InputError, match=message):
        compare_rules(**{"events": "events.csv", "jobs": "jobs.csv"} | given)
