"""Gavel: recorded simulations round by round, shares of its policies, generated jobs, estimated rates of pairs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from bfreplay.runs import RunResult
from bfreplay.systems.gavel.generated_workload import generated_jobs
from bfreplay.systems.gavel.options import GavelOptions
from bfreplay.systems.gavel.pair_estimates import PairEstimator, RelativeRates
from bfreplay.systems.gavel.policies import POLICIES, gavel_policy
from bfreplay.systems.gavel.shares.share_problem import TimeShares
from bfreplay.systems.gavel.shares.water_filling import WaterFilling
from tests.parity.comparison import ANY, EXACT, ROUNDING, Comparison, Reason, Table, Tolerance, difference
from tests.parity.gavel_records import (
    SCENARIOS,
    Call,
    Instance,
    RecordedPolicy,
    RecordedShares,
    completion_s,
    estimator_records,
    figure_11,
    instances,
    job_columns,
    levels,
    record_of,
    recorded_queues,
    recorded_rounds,
    replay_scenario,
    throughputs_of,
)
from tests.parity.records import golden
from tests.systems.gavel.shares.feasible_shares import assert_feasible

OTHER_OPTIMA = (
    "Optimal shares are not unique; the published ones are those of the interior-point solver ECOS. With shares "
    "computed here the average JCT differs by up to 6 %."
)
BISECTION = "The published makespan policies bisect to 5 %; bfreplay solves one linear program and is never longer."
BRACKET = "The published makespan policies do not search below 100 s, where bfreplay finds the optimum."
MISALIGNED = (
    "The published packed policies misalign rows for gangs of different sizes (Q2): a job gets 1.5 times all the time "
    "there, at a lower objective."
)
STOPS_EARLY = (
    "The published water filling has a big-M constant and stops too early (Q8); bfreplay reaches the exact levels."
)

FOLLOW_A_RULE = ("fifo", "fifo_perf", "fifo_packed", "isolated", "gandiva", "allox")
"""Policies with unique shares; those of linear programs are one choice among equally good ones."""

_DETERMINED = (*FOLLOW_A_RULE, "proportional")
_WATER_FILLING = "max_min_fairness_water_filling"
_STRATEGY_PROOF = "max_min_fairness_strategy_proof_perf"

MICROSECONDS = Tolerance(1e-8, reason="the replay's clock is in whole microseconds, and rounds follow one another")
OTHER_SOLVER = Tolerance(1e-6, reason="a solver of its own tolerance")
ECOS = Tolerance(1e-6, reason="ECOS, an interior-point solver, stops there")

ROUNDS = Comparison(
    "rounds of simulations with recorded shares: start, jobs, GPUs, steps, finish",
    {"start": MICROSECONDS, "type, nodes, steps": EXACT, "finish": MICROSECONDS},
)
QUEUES = Comparison(
    "rounds of these simulations: priorities and deficits of jobs", {"priority": ROUNDING, "deficit": ROUNDING}
)
JOBS = Comparison("jobs of these simulations: completion time, status", {"JCT": MICROSECONDS, "status": EXACT})
RUNS = Comparison(
    "these simulations: times of recomputations, leases extended, busy GPUs, average JCT, end",
    {
        "recomputations": MICROSECONDS,
        "leases extended": EXACT,
        "leases that could be": EXACT,
        "busy GPU seconds": MICROSECONDS,
        "utilisation": ROUNDING,
        "is no busier in the ledger": EXACT,
        "average JCT": MICROSECONDS,
        "end": MICROSECONDS,
    },
)
OWN = Comparison(
    "simulations with shares computed here: completion times of all jobs, end",
    {"completion times": MICROSECONDS, "average JCT": MICROSECONDS, "end": MICROSECONDS},
)
UNIQUE = Comparison("calls of policies whose shares are determined: every share", ROUNDING)
OPTIMA = Comparison(
    "calls of policies that optimise: optimum, by another solver from the published formulas", OTHER_SOLVER
)
DEADLINES = Comparison("the same calls with deadlines: whether all can be met", EXACT)
PUBLISHED = Comparison("the same calls: objective of the published answer", ECOS)
FIGURE_11 = Comparison("points of figure 11: exact levels of water filling", OTHER_SOLVER)
PUBLISHED_FIGURE_11 = Comparison(
    "points of figure 11: published levels", Tolerance(1e-5, reason="an interior-point solver, once a level")
)
WORKLOADS = Comparison("generated jobs: type, gang, steps, weight, arrival (us)", EXACT)
ESTIMATES = Comparison(
    "settings of the estimator of pair rates: references, matches, mean error",
    {
        "references": EXACT,
        "matches": EXACT,
        "recognised": ROUNDING,
        "mean error": Tolerance(1e-8, reason="differs in the ninth digit, for a reason that is not known"),
    },
)


def compare_simulation(scenario: str, table: Table, shared: Path) -> None:
    """Compare the simulations of a scenario, with recorded shares of time and with our own."""
    record = record_of(shared, scenario)
    with TemporaryDirectory() as folder:
        for name, result in record["results"].items():
            item = f"{scenario}, {name}"
            with table.attempt(ROUNDS, item):
                shares = RecordedShares(name, result["allocation_events"])
                policy = RecordedPolicy(name, shares, record["seed"])
                run = replay_scenario(record, Path(folder), policy)
                table.compare_all(ROUNDS, f"{item}, round", policy.rounds, recorded_rounds(result))
                if queues := recorded_queues(result):
                    table.compare_all(QUEUES, f"{item}, round", policy.queues, queues)
                table.compare_all(JOBS, f"{item}, job", _jobs(run), _recorded_jobs(result))
                table.compare(RUNS, item, _totals(policy, run, result), _recorded_totals(result))
            with table.attempt(OWN, item):
                run = replay_scenario(
                    record, Path(folder), gavel_policy(name)(GavelOptions(published=True, seed=record["seed"]))
                )
                recorded = {int(job): row["jct"] for job, row in result["jobs"].items()}
                ends = {"average JCT": result["average_jct"], "end": result["total_duration_from_t0"]}
                known = Reason(
                    OTHER_OPTIMA,
                    {"completion times": ANY, "average JCT": Tolerance(0.06), "end": Tolerance(0.10)},
                )
                table.compare(
                    OWN,
                    item,
                    {"completion times": completion_s(run), **_ends(run)},
                    {"completion times": recorded, **ends},
                    None if name in FOLLOW_A_RULE else known,
                )


def _ends(run: RunResult) -> dict[str, float]:
    scheduling = run.summary["scheduling"]
    return {"average JCT": scheduling["average_jct_s"], "end": run.record["config"]["window_end_us"] / 1e6}


def _jobs(run: RunResult) -> dict[int, dict[str, Any]]:
    status = run.jobs["status"].tolist()
    return {job: {"JCT": jct, "status": status[job]} for job, jct in completion_s(run).items()}


def _recorded_jobs(result: dict[str, Any]) -> dict[int, dict[str, Any]]:
    status = {True: "failed", False: "finished"}  # the published program drops a job that fails
    jct = {int(job): row["jct"] for job, row in result["jobs"].items()}
    return {job: {"JCT": seconds, "status": status[seconds is None]} for job, seconds in jct.items()}


def _totals(policy: RecordedPolicy, run: RunResult, result: dict[str, Any]) -> dict[str, Any]:
    counts, ends, ledger = policy.counts, _ends(run), run.summary["ledger"]
    utilisation = float(policy.busy_s().mean()) / result["total_duration_from_t0"]
    # the published program counts the gap before a stale round as busy (``stale_round_start``)
    in_ledger = (ledger["useful_node_us"] + ledger["rescaling_node_us"]) / ledger["idle_node_us"]
    return {
        "recomputations": policy.resets_s,
        "leases extended": counts["lease_extensions"],
        "leases that could be": counts["lease_opportunities"],
        "busy GPU seconds": policy.busy_s(),
        "utilisation": None if result["cluster_utilization"] is None else utilisation,
        "is no busier in the ledger": in_ledger <= utilisation * (1 + 1e-6),
        **ends,
    }


def _recorded_totals(result: dict[str, Any]) -> dict[str, Any]:
    busy_s = result["per_worker_busy_seconds"]
    return {
        "recomputations": [event["t"] for event in result["allocation_events"] if event["allocation"]],
        "leases extended": result["lease_extensions"],
        "leases that could be": result["lease_extension_opportunities"],
        "busy GPU seconds": np.array([busy_s[str(node)] for node in range(len(busy_s))]),
        "utilisation": result["cluster_utilization"],
        "is no busier in the ledger": True,
        "average JCT": result["average_jct"],
        "end": result["total_duration_from_t0"],
    }


def _answers(shared: Path) -> Iterator[tuple[str, Instance, Call, TimeShares]]:
    """Yield our answer to each recorded call of a policy; the calls of an instance share one policy object."""
    for instance in instances(shared).values():
        options = GavelOptions(published=True, seed=instance.policy_params.get("seed") or 0)
        policy = gavel_policy(instance.policy).make_shares(options)
        for k, call in enumerate(instance.calls):
            if call.hierarchy is not None:
                policy = WaterFilling("perf", call.hierarchy)
            yield f"{instance.id}, call {k}", instance, call, policy.shares(call.problem)


def compare_calls(table: Table, shared: Path) -> None:
    """Compare recorded calls of policies: unique shares, optima, and objectives of the published answers."""
    for item, instance, call, shares in _answers(shared):
        if instance.policy in _DETERMINED:
            both = shares, call.recorded_shares()
            table.compare(UNIQUE, item, *([each.share, each.pair_share.ravel()] for each in both))
            continue
        assert_feasible(shares, call.problem)
        if instance.policy.startswith(_WATER_FILLING):
            _compare_levels(table, item, instance, call, shares)
        elif instance.policy == _STRATEGY_PROOF:
            theirs = call.recorded_shares().throughput(call.problem)
            table.compare(PUBLISHED, item, shares.throughput(call.problem), theirs)
        else:
            objective = call.output["objective"]
            table.compare(OPTIMA, item, shares.objective, call.exact_objective)
            known = _why_not_optimal(instance, shares.objective, objective)
            table.compare(PUBLISHED, item, shares.objective, objective["from_allocation"], known)
            if "SLO" in instance.policy:
                table.compare(DEADLINES, item, not shares.deadlines_dropped, objective["SLOs_feasible"])


def _compare_levels(table: Table, item: str, instance: Instance, call: Call, shares: TimeShares) -> None:
    variant = str(POLICIES[instance.policy][1]["variant"])
    ours = levels(shares, call.problem, variant)
    table.compare(OPTIMA, item, ours, call.per_job("independent_exact_levels"))
    if "first_level_objective" in call.output:
        first = call.output["first_level_objective"]["independent"]
        table.compare(OPTIMA, f"{item}, first level", shares.objective, first)
    published = call.per_job("normalized_effective_throughputs")
    stops_early = instance.id.startswith("QUIRK") and (ours - published).max() > 0.01
    table.compare(PUBLISHED, item, ours, published, Reason(STOPS_EARLY, ANY) if stops_early else None)


def _why_not_optimal(instance: Instance, optimum: float, objective: dict[str, Any]) -> Reason | None:
    published = objective["from_allocation"]
    if instance.policy.startswith("min_total_duration") and optimum <= min(published, objective["bisection_T"]):
        return Reason(BRACKET, ANY) if optimum < 100 else Reason(BISECTION, Tolerance(0.05))
    return Reason(MISALIGNED, ANY) if instance.id.startswith("BUG") and optimum > published else None


def compare_figure_11(table: Table, shared: Path) -> None:
    """Compare exact levels with another solver's, and with the published ones, which may stop early."""
    for k, (point, problem, hierarchy) in enumerate(figure_11(shared)):
        shares = WaterFilling("perf", hierarchy).shares(problem)
        assert_feasible(shares, problem)
        ours, exact, published = levels(shares, problem).tolist(), point["exact_perf_levels"], point["perf_levels"]
        table.compare(FIGURE_11, f"point {k}", ours, exact)
        known = Reason(STOPS_EARLY, ANY) if difference(published, exact) > 1e-5 else None
        table.compare(PUBLISHED_FIGURE_11, f"point {k}", ours, published, known)


def compare_workloads(table: Table, shared: Path) -> None:
    """Compare generated jobs with those of the published generator."""
    throughputs = throughputs_of(shared)
    for k, each in enumerate(golden(shared, "gavel/generated_jobs")["sets"]):
        jobs = generated_jobs(
            throughputs,
            len(each["jobs"]),
            each["seed"],
            jobs_per_hour=3600 / each["lambda_seconds"],
            multi_gpu=each["multi_gpu"],
            priorities=each["priorities"],
        )
        recorded = [
            [job_type, gang, steps, weight, round(arrival_s * 1e6)]
            for job_type, gang, _, steps, weight, arrival_s in each["jobs"]
        ]
        table.compare_all(WORKLOADS, f"set {k}, job", job_columns(jobs), recorded)


def compare_estimates(table: Table, shared: Path) -> None:
    """Compare references, matches, recognised fraction and mean error of the estimator of pair rates."""
    throughputs = throughputs_of(shared)
    relative = RelativeRates.of(throughputs.colocation(), throughputs.node_types)
    name = relative.job_types
    for published in (True, False):
        for record in estimator_records(shared, published=published):
            n_references, profiled = record["n_reference"], record["profiling"]
            drawn = []
            for seed in range(record["seeds"]):
                estimator = PairEstimator(relative, profiled, n_references, seed, reads_wrong_columns=published)
                drawn.append((estimator.references, [estimator.match(k) for k in range(len(name))]))
            references, matches = drawn[0]
            ours = {
                "references": [name[k] for k in references],
                "matches": [[name[k], name[match]] for k, match in enumerate(matches)],
                "recognised": float(np.mean([np.mean([match[k] == k for k in known]) for known, match in drawn])),
                "mean error": float(
                    np.mean([np.abs(relative.rate[match] - relative.rate).mean() for _, match in drawn])
                ),
            }
            keys = ("seed0_reference", "seed0_matches", "match_rate_of_reference_types", "mean_abs_error_normalised")
            table.compare(
                ESTIMATES,
                f"{'published' if published else 'corrected'}, {n_references} references, {profiled:.0%} profiled",
                ours,
                dict(zip(ours, (record[key] for key in keys), strict=True)),
            )


ROWS = (
    ROUNDS,
    QUEUES,
    JOBS,
    RUNS,
    OWN,
    UNIQUE,
    OPTIMA,
    DEADLINES,
    PUBLISHED,
    FIGURE_11,
    PUBLISHED_FIGURE_11,
    WORKLOADS,
    ESTIMATES,
)
"""Rows of the table."""
PARTS = {
    **{f"simulations of {scenario}": partial(compare_simulation, scenario) for scenario in SCENARIOS},
    "calls": compare_calls,
    "figure 11": compare_figure_11,
    "generated jobs": compare_workloads,
    "pair rates": compare_estimates,
}
"""Parts of the comparison: functions of a table and the folder of the records."""
THOROUGH = frozenset({"simulations of static12_multi"})
"""Parts that CI leaves out."""
SLOW = frozenset({"pair rates", "simulations of cont12_single", "simulations of static8_single"})
"""Parts that `make test` leaves out as well."""
