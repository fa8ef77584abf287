"""No answer is believed before it is checked, and every failure has an answer instead."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings

from benchmarks.decisions import realistic
from bfreplay.errors import InputError, SolverUnavailableError
from bfreplay.milp.backends import BACKENDS
from bfreplay.milp.exact import ExactSolver
from bfreplay.milp.files.decision_json import FailureFolder, read_decision
from bfreplay.milp.files.models import mps_text
from bfreplay.milp.isolation import IsolatedBackend
from bfreplay.milp.milp_solver import MilpSolver
from bfreplay.milp.problem import AllocationProblem
from bfreplay.milp.solution import ProcessStatus, Quality, SolverStatus
from bfreplay.milp.verify import agrees, magnitude, violation
from tests.examples import examples
from tests.milp.backends.present import present
from tests.milp.faulty_backends import Raises
from tests.milp.small_problems import (
    EnumeratingSolver,
    left_on_seven,
    one_hungry_job,
    optimum_by_enumeration,
    problem_of_two,
    problems,
)

FAULTY = "tests.milp.faulty_backends:"
OPTIMUM = 12.0


def solver(formulation="choices", backend="cbc", **options) -> MilpSolver:
    return MilpSolver(formulation, backend, **{"referee": EnumeratingSolver(), **options})


_WORKERS: dict[str, IsolatedBackend] = {}
"""One of every real back end: the faulty ones each get their own."""


@pytest.fixture(scope="module", autouse=True)
def workers():
    yield
    while _WORKERS:
        _WORKERS.popitem()[1].close()


def solve(problem, formulation="choices", backend="cbc", **options):
    if isinstance(backend, str) and ":" not in backend and not {"isolated", "grace_s"} & set(options):
        options["worker"] = _WORKERS.get(backend) or _WORKERS.setdefault(backend, IsolatedBackend(backend))
    made = solver(formulation, backend, **options)
    try:
        return made.solve(problem)
    finally:
        made.close()


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize("formulation", ["published", "node_level", "choices"])
def test_a_verified_optimum_is_proven(formulation, isolated):
    solution = solve(problem_of_two(), formulation, isolated=isolated)
    assert solution.quality is Quality.PROVEN
    assert solution.process_status is ProcessStatus.OK
    assert solution.solver_status is SolverStatus.OPTIMAL
    assert solution.counts.tolist() == [3, 2]
    assert solution.objective == pytest.approx(OPTIMUM)
    assert solution.bound == pytest.approx(OPTIMUM)
    assert solution.gap == 0
    assert solution.solver == f"{formulation} on cbc"
    assert solution.message == ""
    assert solution.rejected is None
    assert solution.build_s > 0
    assert solution.solve_s > 0
    assert (solution.nodes is None) == (formulation == "choices")


def test_the_published_formulation_is_refereed_with_its_own_limit():
    referee = EnumeratingSolver()
    solution = solve(one_hungry_job(), "published", referee=referee)
    assert solution.quality is Quality.PROVEN
    assert solution.counts.tolist() == [3]
    assert [asked.change_limit for asked in referee.asked] == [3]


def test_a_limit_of_the_problem_itself_stays_when_it_is_the_tighter_one():
    assert one_hungry_job().within_published_limit().change_limit == 3
    tight = AllocationProblem(np.array([0]), np.array([1]), np.array([1]), np.ones((1, 2)), *[np.zeros(1)] * 2, 6, 2)
    assert tight.within_published_limit().change_limit == 2


def test_after_a_failure_the_fallback_answers_the_true_problem_not_the_limited_one():
    solution = solve(one_hungry_job(), "published", FAULTY + "Aborts")
    assert solution.counts.tolist() == [6]


def test_a_formulation_of_constant_losses_refuses_losses_by_count_and_the_fallback_answers(tmp_path):
    solution = solve(left_on_seven(), "published", save_failures=tmp_path / "failures")
    refused = solution.rejected
    assert (refused.process_status, refused.solver_status) == (ProcessStatus.REFUSED, SolverStatus.UNKNOWN)
    assert refused.message.startswith("published takes one loss of a job that gains nodes and one of a job that loses")
    assert "losses of this decision depend on the new count; take another formulation (choices_red" in refused.message
    assert (solution.solver, solution.counts.tolist(), solution.objective) == ("enumeration", [4, 5], 60.0)
    assert not (tmp_path / "failures").exists()  # it is no failure
    alone = solve(left_on_seven(), "published", fallback="none")
    assert (alone.counts, alone.process_status) == (None, ProcessStatus.REFUSED)
    kept = solve(left_on_seven(), "published", fallback="keep")
    assert (kept.counts.tolist(), kept.objective) == ([7, 0], 39.0)


def test_a_formulation_that_reads_constant_losses_without_saying_so_fails_with_what_to_read():
    solution = solve(left_on_seven(), "tests.milp.faulty_formulations:ReadsConstantLosses")
    assert "this AllocationProblem has no scale_up_loss: its losses depend on the count" in solution.rejected.message
    assert solution.counts.tolist() == [4, 5]


FAILURES = [
    ("Aborts", ProcessStatus.CRASHED, SolverStatus.UNKNOWN, Quality.NONE, "SIGABRT"),
    ("KillsItself", ProcessStatus.CRASHED, SolverStatus.UNKNOWN, Quality.NONE, "SIGKILL"),
    ("Segfaults", ProcessStatus.CRASHED, SolverStatus.UNKNOWN, Quality.NONE, "SIGSEGV"),
    ("Hangs", ProcessStatus.TIMED_OUT, SolverStatus.UNKNOWN, Quality.NONE, "no answer after"),
    ("Refuses", ProcessStatus.REFUSED, SolverStatus.UNKNOWN, Quality.NONE, "2,000 allowed"),
    ("CannotStart", ProcessStatus.CRASHED, SolverStatus.UNKNOWN, Quality.NONE, "licence server"),
    ("Raises", ProcessStatus.OK, SolverStatus.ERROR, Quality.NONE, "no such luck"),
    ("ReturnsNonsense", ProcessStatus.OK, SolverStatus.ERROR, Quality.NONE, "returned a str"),
    ("KnowsNothing", ProcessStatus.OK, SolverStatus.UNKNOWN, Quality.NONE, "no answer: solver status unknown"),
    ("ClaimsOptimalWithoutAnswer", ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG, "without an answer"),
    ("CallsSuboptimalOptimal", ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG, "but enumeration has 12"),
    ("LiesAboutObjective", ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG, "claims 13.12, is worth 12"),
    ("LiesAboutBound", ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG, "below its own answer's"),
    ("ClaimsInfinities", ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG, "claims inf, is worth 12"),
    ("AnswersFractions", ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG, "= 0.5 is not whole"),
    ("GivesEverythingToEverybody", ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG, "of 5 idle nodes"),
    ("AnswersNaN", ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG, "not finite"),
    ("AnswersTooFewColumns", ProcessStatus.OK, SolverStatus.OPTIMAL, Quality.WRONG, "(8,) column values for 9"),
]
"""Faults of a back end, what becomes of the process, what the solver says, and the judgement with its message."""


@pytest.mark.often(
    "Aborts",
    "Hangs",
    "CannotStart",
    "Raises",
    "CallsSuboptimalOptimal",
    "LiesAboutObjective",
    "GivesEverythingToEverybody",
)
@pytest.mark.parametrize(
    ("fault", "process", "said_solver", "quality", "message"), FAILURES, ids=[fault for fault, *_ in FAILURES]
)
def test_every_failure_is_named_and_answered_by_the_referee(fault, process, said_solver, quality, message):
    hang = {"time_limit_s": 0.05, "grace_s": 0.05} if fault == "Hangs" else {}
    solution = solve(problem_of_two(), "choices", FAULTY + fault, **hang)
    assert solution.quality is Quality.PROVEN
    assert solution.counts.tolist() == [3, 2]
    assert solution.solver == "enumeration"
    assert message in solution.message
    failed = solution.rejected
    assert (failed.process_status, failed.solver_status, failed.quality) == (process, said_solver, quality)
    assert message in failed.message


def test_a_node_map_that_migrates_is_wrong():
    solution = solve(problem_of_two(), "node_level", FAULTY + "GivesEverythingToEverybody")
    assert solution.rejected.quality is Quality.WRONG


def test_a_lie_about_optimality_is_found_only_with_a_referee():
    solution = solve(problem_of_two(), "choices", FAULTY + "CallsSuboptimalOptimal", referee=None, fallback="none")
    assert solution.quality is Quality.PROVEN
    assert solution.objective < OPTIMUM


def test_an_unproven_answer_is_used_and_labelled():
    solution = solve(problem_of_two(), "choices", FAULTY + "CallsOptimalFeasible")
    assert solution.quality is Quality.FEASIBLE
    assert solution.counts.tolist() == [3, 2]
    assert solution.bound == 1e12
    assert solution.gap > 0
    assert "not proven" in solution.message
    assert solution.rejected is None


def test_the_published_rule_keeps_the_map_instead_of_an_unproven_answer():
    solution = solve(problem_of_two(), "choices", FAULTY + "CallsOptimalFeasible", fallback="keep")
    assert solution.solver == "keep"
    assert solution.counts.tolist() == [1, 2]
    assert solution.quality is Quality.FEASIBLE
    assert solution.objective == pytest.approx(2 + 5)
    assert solution.rejected.counts.tolist() == [3, 2]


def test_keeping_counts_that_a_preemption_made_infeasible_is_said_and_labelled():
    problem = problem_of_two(min_nodes=np.array([1, 3]))
    solution = solve(problem, "choices", FAULTY + "Aborts", fallback="keep")
    assert solution.counts.tolist() == [1, 2]
    assert solution.quality is Quality.WRONG
    assert "job 1 gets 2 nodes, allowed are 0 or 3 to 4" in solution.message
    assert solution.objective == pytest.approx(2.0)  # job 1 does not run on 2 nodes


def test_without_a_fallback_there_is_no_answer():
    solution = solve(problem_of_two(), "choices", FAULTY + "GivesEverythingToEverybody", fallback="none")
    assert solution.counts is None
    assert math.isnan(solution.objective)
    assert math.isinf(solution.gap)
    assert solution.quality is Quality.NONE
    assert solution.rejected.counts is not None


@pytest.mark.parametrize("changes", [{"capacity": 0, "current": np.array([0, 0])}, "no jobs"])
def test_a_decision_without_jobs_or_nodes_needs_no_solver(changes):
    if changes == "no jobs":
        none = np.zeros(0, dtype=np.int64)
        problem = AllocationProblem(none, none, none, np.zeros((0, 1)), np.zeros(0), np.zeros(0), 5)
    else:
        problem = problem_of_two(**changes)
    solution = solve(problem, "choices", FAULTY + "Aborts")
    assert solution.process_status is ProcessStatus.NOT_NEEDED
    assert solution.quality is Quality.PROVEN
    assert solution.counts.tolist() == [0] * problem.n_jobs
    assert solution.objective == 0
    assert solution.gap == 0


def test_a_crash_costs_one_decision_and_the_next_is_answered_by_the_milp_again():
    made = solver("choices", FAULTY + "CrashesEverySecondTime")
    labels = [made.solve(problem_of_two()).solver for _ in range(4)]
    made.close()
    made.close()
    assert labels == ["choices on cbc", "enumeration"] * 2


def test_a_back_end_that_does_not_work_here_is_refused_with_the_fix():
    with pytest.raises(SolverUnavailableError, match="pip install 'gurobipy>=13'"):
        solver("choices", FAULTY + "Unavailable")


def test_a_formulation_with_sets_on_a_back_end_without_is_refused():
    with pytest.raises(SolverUnavailableError, match="special ordered sets"):
        solver("published", FAULTY + "WithoutSets")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"fallback": "exact", "referee": None}, "fallback 'exact' needs a solver to fall back to"),
        ({"fallback": "hope"}, "fallback is unknown"),
        ({"time_limit_s": 0.0}, "time_limit_s is out of range"),
        ({"time_limit_s": math.nan}, "time_limit_s is not finite"),
        ({"time_limit_s": math.inf}, "time_limit_s is not finite"),
        ({"time_limit_s": 1.1e6}, "time_limit_s is out of range"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, says):
    with pytest.raises(InputError, match=says):
        solver(**options)


def test_a_back_end_instance_is_made_anew_in_the_worker():
    solution = solve(problem_of_two(), "choices", Raises())
    assert solution.rejected.message == "ValueError: no such luck"


def test_an_instance_that_no_worker_can_import_is_refused_with_the_fix():
    class Local(Raises):
        pass

    with pytest.raises(InputError, match="isolated=False"):
        solver("choices", Local())
    assert solve(problem_of_two(), "choices", Local(), isolated=False).rejected.message == "ValueError: no such luck"


@pytest.mark.parametrize("claim", ["Infeasible", "Unbounded"])
def test_a_false_claim_that_there_is_no_best_answer_is_wrong(claim, tmp_path):
    solution = solve(problem_of_two(), "choices", FAULTY + f"Claims{claim}", save_failures=tmp_path)
    assert solution.rejected.quality is Quality.WRONG
    assert solution.rejected.solver_status == claim.lower()
    assert "but enumeration has an answer worth 12" in solution.rejected.message
    assert solution.objective == OPTIMUM
    assert len(list(tmp_path.glob("*.mps"))) == 1


def test_a_true_claim_of_infeasibility_is_no_answer_and_not_wrong():
    problem = problem_of_two(min_nodes=np.array([2, 3]), change_limit=0)  # neither may stay, stop or grow
    solution = solve(problem)
    assert solution.rejected.quality is Quality.NONE
    assert solution.rejected.solver_status is SolverStatus.INFEASIBLE


def test_a_model_that_is_refused_for_its_size_is_not_saved(tmp_path):
    refused = solve(problem_of_two(), "choices", FAULTY + "Refuses", save_failures=tmp_path)
    assert refused.rejected.process_status is ProcessStatus.REFUSED
    assert list(tmp_path.iterdir()) == []


def test_failures_are_saved_with_their_inputs_and_nothing_is_overwritten(tmp_path):
    folder = tmp_path / "failures"
    for _ in range(2):
        solve(problem_of_two(), "choices", FAULTY + "Raises", save_failures=folder)
    solve(problem_of_two(), save_failures=folder)
    names = sorted(path.name for path in folder.iterdir())
    assert names == [f"choices-on-faulty-0000{k}.{end}" for k in (0, 1) for end in ("json", "mps")]
    again = read_decision(folder / "choices-on-faulty-00001.json")
    assert np.array_equal(again.value, problem_of_two().value)
    about = json.loads((folder / "choices-on-faulty-00001.json").read_text())["about"]
    assert about["message"] == "ValueError: no such luck"
    assert about["options"]["time_limit_s"] == 10.0


def test_the_longest_time_limit_that_is_taken_works():
    solution = solve(problem_of_two(), time_limit_s=1e6)
    assert solution.rejected is None
    assert solution.quality is Quality.PROVEN


def test_a_bound_that_is_no_number_is_none():
    solution = solve(
        problem_of_two(), "choices", FAULTY + "BoundIsNaN", relative_gap=0.1, referee=None, fallback="none"
    )
    assert (solution.quality, solution.bound, solution.gap) == (Quality.FEASIBLE, math.inf, math.inf)


def test_an_answer_is_read_for_the_problem_that_its_model_was_built_from():
    solution = solve(one_hungry_job(), "tests.milp.faulty_formulations:LimitsItself")
    assert solution.rejected is None
    assert solution.counts.tolist() == [3]


@pytest.mark.slow
def test_processes_that_share_a_folder_of_failures_lose_none(tmp_path):
    failing = (
        "import sys, pathlib\n"
        "from bfreplay.milp.files.decision_json import FailureFolder\n"
        "from tests.milp.small_problems import problem_of_two\n"
        "folder = FailureFolder(pathlib.Path(sys.argv[1]))\n"
        "sys.stdin.read(1)\n"
        "for k in range(100):\n"
        "    folder.keep('choices on cbc', problem_of_two(), None, {'message': f'{sys.argv[2]} {k}'})\n"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", failing, str(tmp_path), name], stdin=subprocess.PIPE) for name in "ab"
    ]
    for process in both:
        process.stdin.write(b"x")
        process.stdin.flush()  # both begin at once
    assert [process.wait(timeout=600) for process in both] == [0, 0]
    for process in both:
        process.stdin.close()
    kept = {json.loads(path.read_text())["about"]["message"] for path in tmp_path.iterdir()}
    assert kept == {f"{name} {k}" for name in "ab" for k in range(100)}


@pytest.mark.slow
def test_only_so_many_failures_of_a_kind_are_kept_where_that_is_asked(tmp_path):
    folder = FailureFolder(tmp_path, most=2)
    for backend in ("Raises", "Refuses", "Raises", "CallsSuboptimalOptimal", "Raises", "Refuses", "Raises"):
        solve(problem_of_two(), "choices", FAULTY + backend, save_failures=folder)
    messages = [json.loads(path.read_text())["about"]["message"] for path in tmp_path.glob("*.json")]
    assert len(messages) == 3  # a refused model is none of the solver's failures
    assert messages.count("ValueError: no such luck") == 2


def test_a_decision_that_no_model_was_made_of_is_saved_too(tmp_path):
    solve(problem_of_two(), "tests.milp.faulty_formulations:RaisesInBuild", save_failures=tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


@pytest.mark.parametrize("formulation", ["choices", "node_level"])
def test_a_saved_model_read_by_another_solver_has_the_same_optimum(tmp_path, formulation):
    present("highs")
    import highspy

    from bfreplay.milp.formulations import formulation_of

    model = formulation_of(formulation).build(problem_of_two())
    text = mps_text(model)
    assert text.count("SOS set") == len(model.sets)
    path = tmp_path / "model.mps"
    path.write_text(text.split("SOS\n")[0].removesuffix("ENDATA\n") + "ENDATA\n")  # HiGHS has no sets
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(path))
    highs.run()
    best = -highs.getInfo().objective_function_value
    assert best == pytest.approx(OPTIMUM) if formulation == "choices" else best >= OPTIMUM - 1e-6


@pytest.fixture(scope="module")
def solvers():
    made = {name: solver(name) for name in ("published", "node_level", "choices")}
    yield made
    for each in made.values():
        each.close()


@pytest.mark.often("published", "choices")
@pytest.mark.parametrize("formulation", ["published", "node_level", "choices"])
@settings(max_examples=examples(50), deadline=None, derandomize=True)
@given(problem=problems())
def test_whatever_happens_the_answer_is_feasible_and_its_objective_its_own(solvers, formulation, problem):
    solution = solvers[formulation].solve(problem)
    best, _ = optimum_by_enumeration(problem)
    if best == -np.inf:
        assert solution.counts is None
        return
    assert violation(problem, solution.counts) == ""
    assert solution.objective <= best + 1e-6 * max(1.0, abs(best))
    posed, _ = optimum_by_enumeration(problem.within_published_limit())
    if formulation != "published" or posed == -np.inf:
        assert agrees(solution.objective, best, magnitude(problem))
    else:
        assert agrees(solution.objective, posed, magnitude(problem)) or solution.rejected is not None


def test_a_bound_below_the_optimum_is_wrong_whatever_the_answer_is():
    solution = solve(problem_of_two(), "choices", FAULTY + "ClaimsAFeasibleOptimumsBoundTooLow")
    assert solution.rejected.quality is Quality.WRONG
    assert "is below the optimum" in solution.rejected.message


def test_what_is_called_optimal_within_the_gap_asked_for_is_used_and_not_called_proven():
    # the start, (1, 2) nodes, is worth 2 + 5 = 7 of 12
    for fallback in ("exact", "keep", "none"):
        solution = solve(
            problem_of_two(), "choices", FAULTY + "CallsTheStartOptimal", relative_gap=0.5, fallback=fallback
        )
        assert solution.rejected is None
        assert (solution.quality, solution.solver_status) == (Quality.FEASIBLE, SolverStatus.OPTIMAL)
        assert (solution.objective, solution.bound) == (7.0, OPTIMUM)


def test_what_is_called_optimal_and_is_further_off_than_the_gap_is_wrong():
    solution = solve(problem_of_two(), "choices", FAULTY + "CallsTheStartOptimal", relative_gap=0.4)
    assert solution.rejected.quality is Quality.WRONG
    assert "within a gap of 0.4" in solution.rejected.message


@pytest.mark.often("highs", "cbc")
@pytest.mark.parametrize("backend", BACKENDS.built_in)
def test_a_gap_is_no_reason_to_fall_back(backend):
    rng = np.random.default_rng(3)
    for _ in range(3):
        solution = solve(realistic(8, 40, 64, 120.0, rng), "choices", backend, relative_gap=0.05, referee=ExactSolver())
        assert solution.rejected is None
        assert solution.gap <= 0.05


@pytest.mark.parametrize(
    "changes",
    [
        {"gain": np.array([[0.0, 1.0, 1e9], [0.0, 1.5, 1e9]]), "max_nodes": np.array([2, 2])},
        {"scale_down_loss": np.array([0.0, 1e9])},
    ],
    ids=["gains beyond the idle nodes", "losses of a job that holds nothing"],
)
def test_what_no_answer_can_have_does_not_blur_what_counts_as_equal(changes):
    fields = {
        "current": np.array([1, 0]),
        "min_nodes": np.array([1, 1]),
        "max_nodes": np.array([1, 1]),
        "gain": np.array([[0.0, 1.0], [0.0, 1.5]]),
        "scale_up_loss": np.zeros(2),
        "scale_down_loss": np.zeros(2),
    }
    problem = AllocationProblem(**{**fields, **changes}, capacity=1)
    solution = solve(problem, "choices", FAULTY + "CallsTheStartOptimal")  # job 0 keeps its node: 1.0 instead of 1.5
    assert solution.rejected.quality is Quality.WRONG
    assert solution.objective == 1.5


def test_seconds_that_are_none_cost_the_decision_only():
    solution = solve(problem_of_two(), "choices", FAULTY + "TellsNoSeconds")
    assert "build_s is None" in solution.rejected.message
    assert solution.objective == OPTIMUM


def test_an_answer_that_cannot_be_read_costs_the_decision_only():
    solution = solve(problem_of_two(), "choices", FAULTY + "CannotBeRead")
    assert solution.rejected.process_status is ProcessStatus.CRASHED
    assert "cannot be read: ValueError" in solution.rejected.message
    assert solution.objective == OPTIMUM


def test_a_worker_of_another_back_end_is_refused():
    with IsolatedBackend("highs") as worker, pytest.raises(InputError, match="the worker runs another back end"):
        solver("choices", "cbc", worker=worker)


@pytest.mark.parametrize(
    ("option", "value"),
    [("threads", 0), ("threads", 1.5), ("seed", -1), ("seed", 2**31), ("relative_gap", 1.0), ("time_limit_s", 0.0)],
)
def test_options_out_of_range_are_refused_before_anything_is_solved(option, value):
    with pytest.raises(InputError, match=r"out of range|below|above|no whole number"):
        solver("choices", "cbc", **{option: value})


def test_after_a_wrong_answer_too_the_fallback_answers_the_true_problem():
    solution = solve(one_hungry_job(), "published", FAULTY + "CallsSuboptimalOptimal")
    assert solution.rejected.quality is Quality.WRONG
    assert solution.counts.tolist() == [6]


@pytest.mark.parametrize("warm_start", [True, False])
def test_a_start_is_given_unless_it_is_not_wanted(warm_start):
    solution = solve(problem_of_two(), "choices", FAULTY + "TellsItsOptions", warm_start=warm_start)
    assert f"start {warm_start}" in solution.rejected.message


def test_seconds_of_handing_over_are_counted_once():
    made = solver("choices", FAULTY + "TakesItsTimeToBuild")
    made.solve(problem_of_two())  # starts the worker
    started = time.perf_counter()
    solution = made.solve(problem_of_two())
    elapsed_s = time.perf_counter() - started
    made.close()
    assert solution.build_s >= 0.3
    assert solution.build_s + solution.solve_s <= elapsed_s


def test_a_job_that_keeps_more_nodes_than_its_table_has_is_worth_nothing():
    problem = problem_of_two(current=np.array([0, 5]))
    solution = solve(problem, "choices", FAULTY + "Aborts", fallback="keep")
    assert solution.counts.tolist() == [0, 5]
    assert solution.objective == 0.0


def test_an_answer_of_the_wrong_length_is_not_cut_to_fit():
    solution = solve(problem_of_two(), "node_level", FAULTY + "AnswersTooFewColumnsWithoutSets", reformulate_sets=True)
    assert solution.rejected.quality is Quality.WRONG
    assert "column values for" in solution.rejected.message
