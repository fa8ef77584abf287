"""``compare_rules`` from files to the record, and its sentences and picture."""

import json

import msgspec
import pytest

from bfreplay import InputError, compare_rules, load_events, load_jobs, write_events
from bfreplay.bounds import upper_bound
from bfreplay.datasets.log.events import with_node_types
from bfreplay.experiments.rule_comparison import GRIDS, settings_to_try
from bfreplay.experiments.run_options import RunOptions
from bfreplay.experiments.sweep import run_sweep
from bfreplay.policies.spec import TermSpec
from bfreplay.report.figures.rules import hours_by_label, page, shown_runs
from bfreplay.result_folders.rules import LABELS, RuleComparison
from bfreplay.runs.rule_text import answer_of, notes, rule_table
from tests.campaigns.small_campaigns import source
from tests.experiments.sweep.small_sweeps import Inline
from tests.experiments.tuning.little_logs import JOBS, START, write_jobs, write_log

RULE = "products.scavenger"
COSTS = {"restart_cost": 60.0, "work_saved_every": 600.0, "saves": "never"}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run_sweep, "ProcessExecutor", Inline)
    monkeypatch.setitem(GRIDS, RULE, ({"size": (None, 1, 2, 4)}, {}))
    write_log(tmp_path / "events.csv")
    write_jobs(tmp_path / "jobs.csv")
    return tmp_path


def found(**given):
    return compare_rules("events.csv", "jobs.csv", **{"rules": ["scavenger"], "max_parallel": 2} | given)


def alone(**given):
    own = {"events": "events.csv", "t_fwd": 150.0, "max_parallel": 2, "efficiency": False, "bound": False, **COSTS}
    return RunOptions(jobs="jobs.csv", unlimited_work=True, **own | given).run(with_tables=True)


def test_every_figure_is_that_of_the_run_by_itself_over_the_bound(files):
    record = found(count="samples").record
    runs = [*record.rules, *record.yardsticks]
    assert [run.policy for run in runs] == [RULE, f"{RULE}(size=1)", f"{RULE}(size=2)", "bftrainer", "reclaim-aware"]
    log = load_events("events.csv")
    bound = upper_bound(log, load_jobs("jobs.csv").endless(2, log.window_start_us), 2).free_rescaling_samples
    assert sum(record.bound_samples) == pytest.approx(bound)
    for run in runs:
        whole, half = (alone(policy=run.policy, window=(START, f"2024-05-01T0{end}:00")) for end in ("3:00", "1:30"))
        n_restarts, whole, half = whole.n_rows("allocations"), whole.summary, half.summary
        first, second = (share * most for share, most in zip(run.half_shares, record.bound_samples, strict=True))
        assert first + second == pytest.approx(whole.ledger.samples) == pytest.approx(run.share * bound)
        assert run.rule != RULE or first == pytest.approx(half.ledger.samples)
        assert run.node_us == {name: whole.ledger[name] for name in run.node_us}
        assert run.n_restarts == n_restarts > 0
        assert run.delay_node_hours == whole.batch_starts.delay_node_hours > 0


def test_speed_up_counts_seconds_of_one_node(files):
    """On one node each, always idle, two jobs make two samples a second but for one pause of 60 s each."""
    record = found().record
    assert record.rules[1].share * sum(record.bound_samples) == pytest.approx(2 * (3 * 3600 - 60))
    assert record.job_hours == 6.0


def test_settings_that_cannot_differ_are_tried_once(monkeypatch):
    jobs, wide = load_jobs("sample")[:2], load_jobs("sample")[6:7]  # at most 64 and 16 nodes; 4 to 16 nodes

    def tried(*given):
        return [str(term).removeprefix(RULE) for term in settings_to_try(RULE, *given).values()]

    assert tried(jobs) == ["", "(size=4)", "(size=8)", "(size=16)"]
    assert tried(jobs, TermSpec(RULE, (("requeue_s", 120),)))[-1] == "(requeue_s=120)"
    monkeypatch.setitem(GRIDS, RULE, ({"size": (None, 1, 2, 4)}, {}))
    assert tried(wide) == ["", "(size=1)"]
    monkeypatch.delitem(GRIDS, RULE)  # as a rule that has no settings of its own
    assert tried(jobs) == ["", "(max_nodes=8)", "(max_nodes=16)"]


def test_costs_are_the_users_else_the_rules_else_those_of_all(files, monkeypatch):
    cheap = {"restart_cost": 10.0, "saves": "on-resize"}
    monkeypatch.setitem(GRIDS, RULE, ({}, cheap))
    record = found().record
    assert record.config.costs == {RULE: COSTS | cheap, "bftrainer": COSTS, "reclaim-aware": COSTS}
    assert (
        f"{RULE} changes cheaply by design: a pause of 10 s, work saved every 600 s, saves: on-resize." in record.notes
    )
    costs = found(restart_cost=30, work_saved_every=0).record.config.costs[RULE]
    assert costs == {"restart_cost": 30.0, "work_saved_every": 0.0, "saves": "never"}


def test_the_same_call_resumes(files, monkeypatch):
    record = found(out="out").record
    text = (files / "out" / "rules.json").read_bytes()
    (files / "out" / "rules.json").unlink()  # as if killed
    monkeypatch.setattr(run_sweep, "ProcessExecutor", None)  # all runs are there
    assert found(out="out").record == record == RuleComparison.load("out").record
    assert (files / "out" / "rules.json").read_bytes() == text
    assert RuleComparison.load("out").table["n_restarts"].tolist()[:1] == [record.rules[0].n_restarts]


@pytest.fixture
def record(files):
    """46 % at the defaults; 60 % with size 1; size 2, the best of the first half, loses three points on the second."""
    shares = [(0.46, (0.4, 0.52)), (0.6, (0.5, 0.7)), (0.5, (0.51, 0.49)), (0.66, (0.66, 0.66)), (0.71, (0.7, 0.72))]
    record = found().record
    runs = [
        msgspec.structs.replace(run, share=share, half_shares=halves, delay_node_hours=None)
        for run, (share, halves) in zip([*record.rules, *record.yardsticks], shares, strict=True)
    ]
    costs = record.config.costs | {"products.other": COSTS, "products.cheap": COSTS | {"restart_cost": 1.0}}
    config = msgspec.structs.replace(record.config, costs=costs)
    return msgspec.structs.replace(record, config=config, rules=runs[:3], yardsticks=runs[3:])


def test_the_answer_says_what_was_reached_and_what_choosing_on_the_first_half_gains(record):
    assert answer_of(record) == (
        "On this log products.scavenger at its defaults reaches 46 % of the upper bound where reclaim-aware reaches "
        "71 %; size=1 (the best of 3 settings tried on this log) reaches 60 %. Chosen on the first half, size=2 loses "
        "3 points against the defaults on the second."
    )
    row = rule_table(record).rows[0]
    assert (row[:4], row[-3:]) == ([RULE, 0.46, 0.6, pytest.approx(-3.0)], [3, "size=1", "size=2"])
    assert notes(record)[-1].startswith("The delay of batch jobs is unknown")
    other = msgspec.structs.replace(record.rules[0], rule="products.other", share=0.5)
    several = answer_of(msgspec.structs.replace(record, rules=[*record.rules, other]))
    assert "products.other, the best of 2 rules at their defaults, reaches 50 %" in several
    assert "products.scavenger(size=1) (the best of 4 settings tried on this log)" in several


def test_a_rule_with_costs_of_its_own_is_not_the_best_of_all(record):
    cheap = msgspec.structs.replace(record.rules[0], rule="products.cheap", share=0.9, half_shares=(0.9, 0.9))
    other = msgspec.structs.replace(record.rules[0], rule="products.other", share=0.5)
    answer = answer_of(msgspec.structs.replace(record, rules=[*record.rules, other, cheap]))
    assert "products.other, the best of 2 rules at their defaults and the same costs, reaches 50 %" in answer
    assert "products.scavenger(size=1) (the best of 4 settings tried on this log)" in answer
    alone = answer_of(msgspec.structs.replace(record, rules=[cheap]))
    assert alone.startswith("On this log products.cheap at its defaults reaches 90 %")


def test_the_answer_speaks_of_the_users_setting(record):
    config = msgspec.structs.replace(record.config, yours=f"{RULE}(size=1)")
    other = msgspec.structs.replace(record.rules[0], rule="products.other", share=0.65)
    answer = answer_of(msgspec.structs.replace(record, config=config, rules=[*record.rules, other]))
    assert answer.startswith("On this log products.scavenger(size=1), your setting, reaches 60 % of the upper bound")
    assert "no other of the 3 settings tried on this log reaches more." in answer
    assert found(yours="scavenger(size=4)").record.config.yours == RULE  # which means the same to these jobs


_NO_TIME = {f"{label}_node_us": 0 for label in ("idle", *LABELS)}


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("rules", {"share": 1e308}),
        ("rules", {"node_us": {"idle_node_us": 10, "useful_node_us": 10}}),
        ("rules", {"node_us": _NO_TIME}),
        ("rules", {"node_us": _NO_TIME | {"idle_node_us": 10}}),
        (None, {"job_hours": 0.0}),
    ],
)
def test_a_record_that_no_page_can_show_is_damaged(files, part, change):
    found(out="out")
    document = json.loads((files / "out" / "rules.json").read_text())
    (document if part is None else document[part][0]).update(change)
    (files / "out" / "rules.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="the rules folder is damaged"):
        RuleComparison.load("out")


def test_nothing_is_ever_lost_where_all_work_is_saved(files):
    assert "cost a pause of 60 s, and no work is ever lost. No product" in found(work_saved_every=0).record.notes[0]


def test_the_picture_has_each_rule_at_its_defaults_and_at_its_best_and_the_yardsticks(record):
    runs = shown_runs(record)
    for label, hours in hours_by_label(runs).items():
        assert sum(hours.part.values()) == 2 * hours.idle > 0, label  # which is a part too
    bars = [[46.0], ["scavenger"], [60.0], ["scavenger(size=1)"], [66.0, 71.0], ["bftrainer", "reclaim-aware"]]
    assert [trace[axis] for trace in page(runs).traces for axis in "xy"] == bars


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"rules": ["rya"]}, "scavenger"),
        ({"yours": "bftrainer"}, "scavenger"),
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
    write_events(with_node_types(load_events("events.csv"), {"a": ["n1", "n2"], "b": ["n3"]}), "two.parquet")
    (files / "wide.csv").write_text(f"{JOBS.splitlines()[0]}\nwide,4,4,10,5,5000,0:0 4:60\n")  # three nodes at most
    with pytest.raises(InputError, match=message):
        compare_rules(**{"events": "events.csv", "jobs": "jobs.csv"} | given)
