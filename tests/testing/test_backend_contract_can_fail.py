"""A contract that nothing can break is none: what that of a back end asks for is broken, one thing at a time."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bfreplay.milp import BackendAnswer, ModelRefusedError, SolverStatus
from bfreplay.milp.backends.cbc import CbcMip
from bfreplay.milp.backends.highs import Highs
from bfreplay.milp.formulations.choices import Choices
from bfreplay.milp.isolation import IsolatedAnswer, IsolatedBackend
from bfreplay.milp.solution import ProcessStatus
from bfreplay.testing import BackendContract
from tests.milp import faulty_backends as faulty

ROOT = Path(__file__).resolve().parents[2]


class Here:
    """A back end in this process, as ``IsolatedBackend`` shows it: nobody starts forty workers for this page."""

    def __init__(self, backend):
        self.backend = backend

    def solve(self, model, options):
        try:
            return IsolatedAnswer(ProcessStatus.OK, self.backend.solve(model, options), "", 0.0)
        except ModelRefusedError as error:
            return IsolatedAnswer(ProcessStatus.REFUSED, None, str(error), 0.0)
        except ValueError as error:
            return IsolatedAnswer(ProcessStatus.OK, None, str(error), 0.0)


class NamelessBackend(CbcMip):
    name = ""


class ForgetsItsLicence(CbcMip):
    capabilities = "all"


class ForgetsSets(CbcMip):
    def solve(self, model, options):
        return super().solve(replace(model, sets=()), options)


class ForgetsWeights(CbcMip):
    def solve(self, model, options):
        sets = tuple(replace(each, weights=np.arange(1.0, each.columns.size + 1)) for each in model.sets)
        return super().solve(replace(model, sets=sets), options)


class HasNoIdeaHowGoodItCouldBe(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return replace(answer, bound=answer.bound + 100.0)


class IsNeverSure(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return answer if answer.x is None else replace(answer, solver_status=SolverStatus.FEASIBLE)


class AnswersWhatIsInfeasible(CbcMip):
    def solve(self, model, options):
        return super().solve(replace(model, row_lower=np.full(model.n_rows, -np.inf)), options)


class AnswersAndDeniesIt(CbcMip):
    def solve(self, model, options):
        return replace(super().solve(model, options), solver_status=SolverStatus.INFEASIBLE)


class FailsToTellItsVersion(CbcMip):
    def version(self):
        raise OSError("no library")


class RelaxesSilently(CbcMip):
    def solve(self, model, options):
        return super().solve(replace(model, is_integer=np.zeros(model.n_columns, dtype=bool)), options)


class ForgetsTheConstant(CbcMip):
    def solve(self, model, options):
        return super().solve(replace(model, objective_constant=0.0), options)


class ForgetsUpperSides(CbcMip):
    def solve(self, model, options):
        return super().solve(replace(model, row_upper=np.full(model.n_rows, np.inf)), options)


class TakesOnlyPositiveColumns(CbcMip):
    def solve(self, model, options):
        return super().solve(replace(model, column_lower=np.maximum(model.column_lower, 0.0)), options)


class BelievesItsStart(CbcMip):
    def solve(self, model, options):
        if model.start is None:
            return super().solve(model, options)
        worth = float(model.objective @ model.start)
        return BackendAnswer(SolverStatus.OPTIMAL, model.start, worth, worth)


class TakesMoreThanItSays(CbcMip):
    capabilities = replace(CbcMip.capabilities, sos=False)

    def solve(self, model, options):
        return CbcMip().solve(model, options)


class RefusesWithoutAName(CbcMip):
    def solve(self, model, options):
        raise ModelRefusedError("too many special ordered sets")


class RefusesWithoutAReason(Highs):
    def solve(self, model, options):
        raise ModelRefusedError("highs does not like this model")


class AnswersFeasibleWithoutColumns(CbcMip):
    def solve(self, model, options):
        return BackendAnswer(SolverStatus.FEASIBLE)


class AnswersAList(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return replace(answer, x=answer.x.tolist())


class CallsWhateverItHasOptimal(CbcMip):
    def solve(self, model, options):
        return replace(super().solve(model, options), solver_status=SolverStatus.OPTIMAL)


class CallsEveryFailureInfeasible(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return answer if answer.x is not None else replace(answer, solver_status=SolverStatus.INFEASIBLE)


class TakesItsAnswerForABound(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return answer if answer.x is None else replace(answer, bound=answer.objective)


class StopsWithoutSayingSo(CbcMip):
    """At a second of the dual simplex, say: it finds nothing, and calls that infeasible."""

    def solve(self, model, options):
        return BackendAnswer(SolverStatus.INFEASIBLE) if options.time_limit_s < 1 else super().solve(model, options)


class ForgetsWhatTheGapLeavesOpen(CbcMip):
    """Stops as soon as the gap allows, and calls what it has its bound."""

    def solve(self, model, options):
        answer = super().solve(model, options)
        if options.relative_gap == 0:
            return answer
        x = answer.x.copy()
        x[np.flatnonzero(x)[0]] = 0.0
        worth = float(model.objective @ x)
        return replace(answer, x=x, objective=worth, bound=worth)


class LosesItsStart(Highs):
    def solve(self, model, options):
        return super().solve(replace(model, start=None), options)


class NeverTwiceTheSame(CbcMip):
    made = itertools.count()

    def solve(self, model, options):
        answer = super().solve(model, options)
        return replace(answer, bound=answer.bound + 1e-9 * next(self.made))


class TakesOneThread(CbcMip):
    def solve(self, model, options):
        if options.threads > 1:
            raise ValueError("one thread only")
        return super().solve(model, options)


class RoundsItsCoefficients(CbcMip):
    """To a thousandth of the largest."""

    def solve(self, model, options):
        step = 1e-3 * np.abs(model.objective).max(initial=1e-300)
        rounded = np.rint(model.objective / step) * step
        answer = super().solve(replace(model, objective=rounded), options)
        if answer.x is None:
            return answer
        worth = float(model.objective @ answer.x) + model.objective_constant
        return replace(answer, objective=worth, bound=worth)


OPTIMUM, INFEASIBLE = "test_it_finds_the_optimum", "test_it_calls_an_infeasible_model_infeasible"
UNBOUNDED, TIME = "test_it_calls_an_unbounded_model_unbounded", "test_a_time_limit_is_a_status_and_bounds_stay_bounds"


@pytest.mark.parametrize(
    ("backend", "test", "case", "why"),
    [
        (ForgetsTheConstant, OPTIMUM, "a constant in the objective", "not worth what it claims"),
        (ForgetsUpperSides, OPTIMUM, "whole columns", "row row0 is"),
        (RelaxesSilently, OPTIMUM, "whole columns that the relaxation gets wrong", "is not whole"),
        (TakesOnlyPositiveColumns, OPTIMUM, "infinite lower bounds", "== 35"),
        (ForgetsSets, OPTIMUM, "at most two neighbours of an SOS2", "set 0 has 2 members"),
        (ForgetsSets, OPTIMUM, "an SOS1 over whole columns", "set 0 has"),
        (ForgetsWeights, OPTIMUM, "an SOS2 whose columns are not in the order of their weights", "set 0 has 2 members"),
        (HasNoIdeaHowGoodItCouldBe, OPTIMUM, "whole columns", "== 11"),
        (AnswersAndDeniesIt, OPTIMUM, "whole columns", "says infeasible, and has an answer"),
        (RoundsItsCoefficients, OPTIMUM, "an objective of size 1e-07", "== 7.6"),
        (RoundsItsCoefficients, OPTIMUM, "differences of a millionth", "== 1.0000"),
        (BelievesItsStart, OPTIMUM, "a start that is feasible", "2.0 == 11"),
        (BelievesItsStart, OPTIMUM, "a start that breaks a row above", "row row0 is"),
        (BelievesItsStart, OPTIMUM, "a start that breaks bounds", "is outside 0.0 to 3.0"),
        (BelievesItsStart, OPTIMUM, "a start that is not whole", "is not whole"),
        (BelievesItsStart, INFEASIBLE, "integrality, with a start", "row row0 is"),
        (TakesMoreThanItSays, OPTIMUM, "several sets of either kind", "takes a model that its capabilities"),
        (RefusesWithoutAName, OPTIMUM, "whole columns", "refuses a model that it must take"),
        (RefusesWithoutAName, OPTIMUM, "infinite upper bounds", "does not name cbc"),
        (RefusesWithoutAReason, OPTIMUM, "an SOS1 over whole columns", "has none of"),
        (AnswersFeasibleWithoutColumns, OPTIMUM, "whole columns", "it has no answer"),
        (AnswersAList, OPTIMUM, "whole columns", "isinstance"),
        (faulty.CallsSuboptimalOptimal, OPTIMUM, "whole columns", "2.0 == 11"),
        (faulty.CallsOptimalFeasible, OPTIMUM, "whole columns", "feasible"),
        (faulty.LiesAboutObjective, OPTIMUM, "whole columns", "not worth what it claims"),
        (faulty.LiesAboutBound, OPTIMUM, "whole columns", "below its own answer"),
        (faulty.AnswersFractions, OPTIMUM, "whole columns", "is not whole"),
        (faulty.GivesEverythingToEverybody, OPTIMUM, "an equation", "row row0 is"),
        (faulty.AnswersNaN, OPTIMUM, "whole columns", "not finite"),
        (faulty.AnswersTooFewColumns, OPTIMUM, "whole columns", r"\(1,\) == \(2,\)"),
        (faulty.ClaimsOptimalWithoutAnswer, OPTIMUM, "whole columns", "it has no answer"),
        (faulty.ClaimsInfeasible, OPTIMUM, "whole columns", "infeasible"),
        (faulty.ClaimsUnbounded, OPTIMUM, "whole columns", "unbounded"),
        (faulty.KnowsNothing, INFEASIBLE, "integrality", "row row0 is"),
        (faulty.ClaimsUnbounded, INFEASIBLE, "two rows", "unbounded"),
        (CallsEveryFailureInfeasible, UNBOUNDED, "whole columns", "infeasible"),
        (CallsWhateverItHasOptimal, TIME, 0.5, "optimal|it has no answer"),
        (TakesItsAnswerForABound, TIME, 0.5, "excludes the optimum"),
        (StopsWithoutSayingSo, TIME, 0.05, "infeasible"),
    ],
)
def test_a_broken_answer_fails(backend, test, case, why):
    broken = backend()
    with pytest.raises(AssertionError, match=why):
        getattr(BackendContract(), test)(case, Here(broken), broken)


@pytest.mark.parametrize(
    ("backend", "test", "why"),
    [
        (StopsWithoutSayingSo, "test_almost_no_time_gives_no_optimum_that_was_not_proven", "infeasible"),
        (LosesItsStart, "test_a_start_is_used_where_that_is_declared", "lost the start"),
        (NeverTwiceTheSame, "test_the_same_model_and_seed_give_the_same_answer", "=="),
        (TakesOneThread, "test_several_threads_and_one_again", "one thread only"),
        (ForgetsWhatTheGapLeavesOpen, "test_a_gap_bounds_what_may_be_called_optimal", "excludes the optimum"),
        (IsNeverSure, "test_a_gap_bounds_what_may_be_called_optimal", "feasible"),
        (faulty.CallsSuboptimalOptimal, "test_a_gap_bounds_what_may_be_called_optimal", "worse than the gap allows"),
    ],
)
def test_a_back_end_that_does_not_do_as_told_fails(backend, test, why):
    broken = backend()
    with pytest.raises(AssertionError, match=why):
        getattr(BackendContract(), test)(Here(broken), broken)


@pytest.mark.parametrize("formulation", ["choices", "node_level"])
def test_a_wrong_optimum_of_a_random_decision_fails(formulation):
    broken = faulty.CallsSuboptimalOptimal()
    with pytest.raises(AssertionError, match="called optimal at"):
        BackendContract().test_random_decisions_get_their_optimum(formulation, Here(broken), broken)


def test_an_answer_to_an_infeasible_decision_fails():
    broken = AnswersWhatIsInfeasible()
    with pytest.raises(AssertionError):
        BackendContract().test_random_decisions_get_their_optimum("choices", Here(broken), broken)


@pytest.mark.parametrize(
    ("backend", "name"),
    [
        (NamelessBackend, "tests.somewhere:Nameless"),
        (FailsToTellItsVersion, "cbc"),
        (ForgetsItsLicence, "cbc"),
        (CbcMip, "another"),
        (Choices, "cbc"),
    ],
)
def test_a_back_end_that_does_not_say_what_it_is_fails(backend, name):
    with pytest.raises(AssertionError):
        BackendContract().test_it_says_what_it_is(name, backend())


def test_a_loud_back_end_fails():
    with pytest.raises(AssertionError, match="chatter"):
        BackendContract().test_nothing_reaches_standard_output_or_error(
            "tests.milp.faulty_backends:Chatters", faulty.Chatters()
        )


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Aborts", "SIGABRT"),
        ("Raises", "ValueError: no such luck"),
        ("ReturnsNonsense", "returned a str"),
        ("Refuses", "refuses a model that it must take: 2,001 columns"),
        ("CannotStart", "the worker did not start"),
    ],
)
def test_a_back_end_that_does_not_answer_fails(name, why):
    broken = getattr(faulty, name)
    with IsolatedBackend(f"tests.milp.faulty_backends:{name}") as worker, pytest.raises(AssertionError, match=why):
        BackendContract().test_it_finds_the_optimum("whole columns", worker, broken)


UNAVAILABLE = """
from bfreplay.testing import BackendContract
class TestIt(BackendContract):
    backend = "tests.milp.faulty_backends:Unavailable"
"""


def test_a_back_end_that_does_not_work_here_fails_before_any_test(tmp_path):
    (tmp_path / "test_it.py").write_text(UNAVAILABLE)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-k", "says_what_it_is", "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "does not work here: no licence found" in done.stdout
    assert "1 error in" in done.stdout
