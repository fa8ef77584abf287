"""Back ends that fail in every way seen so far; some solve right first and then falsify."""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from bfreplay.milp.backends import BackendAnswer, Capabilities, ModelRefusedError, SolveOptions
from bfreplay.milp.backends.cbc import CbcMip
from bfreplay.milp.model import LinearModel
from bfreplay.milp.solution import SolverStatus


class Faulty:
    name = "faulty"
    capabilities = Capabilities(sos=True)

    def available(self) -> str:
        return ""

    def solve(self, model: LinearModel, options: SolveOptions) -> BackendAnswer:
        raise NotImplementedError


class Aborts(Faulty):
    def solve(self, model, options):
        os.abort()


class KillsItself(Faulty):
    def solve(self, model, options):
        os.kill(os.getpid(), signal.SIGKILL)


class Segfaults(Faulty):
    def solve(self, model, options):
        ctypes.string_at(0)


class Exits(Faulty):
    def solve(self, model, options):
        os.write(2, b"heap corruption detected\n")
        os._exit(7)


class Hangs(Faulty):
    def solve(self, model, options):
        while True:
            time.sleep(1)


class HangsHoldingTheInterpreterLock(Faulty):
    def solve(self, model, options):
        ctypes.PyDLL(None).sleep(600)


class Raises(Faulty):
    def solve(self, model, options):
        raise ValueError("no such luck")


class Refuses(Faulty):
    def solve(self, model, options):
        raise ModelRefusedError("2,001 columns, 2,000 allowed")


class ReturnsNonsense(Faulty):
    def solve(self, model, options):
        return "optimal, trust me"


class EatsMemory(Faulty):
    def solve(self, model, options):
        hoard = bytearray(1 << 36)
        return BackendAnswer(SolverStatus.OPTIMAL, np.zeros(model.n_columns), float(len(hoard)))


class Chatters(CbcMip):
    """Right, but loud on both the C and the Python side."""

    def solve(self, model, options):
        print("chatter")
        print("complaint", file=sys.stderr)
        os.write(1, b"x" * 100_000)
        os.write(2, b"y" * 100_000)
        return super().solve(model, options)


class CrashesEverySecondTime(CbcMip):
    """Per worker: the first solve is right, the second aborts."""

    solved = 0

    def solve(self, model, options):
        type(self).solved += 1
        if type(self).solved == 2:
            os.abort()
        return super().solve(model, options)


class InterruptsItsParent(CbcMip):
    """Per worker: the first solve is right; during the second, Ctrl-C reaches the parent, and an answer comes late."""

    solved = 0

    def solve(self, model, options):
        type(self).solved += 1
        if type(self).solved == 2:
            os.kill(os.getppid(), signal.SIGINT)
            time.sleep(0.5)
        return super().solve(model, options)


class CannotStart(Faulty):
    def __init__(self) -> None:
        if "bfreplay.milp.worker" in sys.modules or "milp/worker" in sys.argv[0]:
            raise OSError("licence server unreachable")


class Unavailable(Faulty):
    def available(self) -> str:
        return "no licence found; pip install 'gurobipy>=13'"


class WithoutSets(Faulty):
    capabilities = Capabilities(sos=False)


class CallsSuboptimalOptimal(CbcMip):
    """Minimises instead and calls that optimal; the objective it reports is the true one of its bad answer."""

    def solve(self, model, options):
        worst = super().solve(replace(model, objective=-model.objective), options)
        value = float(model.objective @ worst.x) + model.objective_constant
        return replace(worst, objective=value, bound=value)


class CallsOptimalFeasible(CbcMip):
    """Right, but does not know that it is optimal: as when stopped by its time limit."""

    def solve(self, model, options):
        return replace(super().solve(model, options), solver_status=SolverStatus.FEASIBLE, bound=1e12)


class LiesAboutObjective(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return replace(answer, objective=answer.objective * 1.01 + 1.0, bound=np.inf)


class LiesAboutBound(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return replace(answer, bound=answer.objective - 1.0 - abs(answer.objective))


class ClaimsInfinities(CbcMip):
    def solve(self, model, options):
        return replace(super().solve(model, options), objective=np.inf, bound=-np.inf)


class BoundIsNaN(CbcMip):
    def solve(self, model, options):
        return replace(super().solve(model, options), bound=np.nan)


class AnswersFractions(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return replace(answer, x=np.where(model.is_integer, answer.x * 0.5, answer.x))


class GivesEverythingToEverybody(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return replace(answer, x=np.where(model.is_integer, 1.0, answer.x))


class AnswersNaN(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return replace(answer, x=np.full_like(answer.x, np.nan))


class AnswersTooFewColumns(CbcMip):
    def solve(self, model, options):
        answer = super().solve(model, options)
        return replace(answer, x=answer.x[:-1])


class ClaimsOptimalWithoutAnswer(Faulty):
    def solve(self, model, options):
        return BackendAnswer(SolverStatus.OPTIMAL)


class KnowsNothing(Faulty):
    def solve(self, model, options):
        return BackendAnswer(SolverStatus.UNKNOWN, np.zeros(model.n_columns), 0.0, 0.0)


class ClaimsInfeasible(Faulty):
    def solve(self, model, options):
        return BackendAnswer(SolverStatus.INFEASIBLE)


class ClaimsUnbounded(Faulty):
    def solve(self, model, options):
        return BackendAnswer(SolverStatus.UNBOUNDED)


class RunsAnotherProgram(Faulty):
    """As PuLP does: the solver is a process of its own, with files. Hangs when it gets less than a second."""

    capabilities = Capabilities(sos=True, crash_isolated=True)

    def solve(self, model, options):
        with tempfile.TemporaryDirectory() as folder:
            if options.time_limit_s < 1:
                subprocess.run(["sleep", "600"], check=False)
            subprocess.Popen(["sleep", "600"])
            return BackendAnswer(SolverStatus.NO_SOLUTION, message=str(Path(folder).parent))


class TellsItsPath(Faulty):
    def solve(self, model, options):
        return BackendAnswer(SolverStatus.NO_SOLUTION, message=os.pathsep.join(sys.path))


class ClaimsAFeasibleOptimumsBoundTooLow(CbcMip):
    """Stops at the start, and says that nothing can be better."""

    def solve(self, model, options):
        worth = float(model.objective @ model.start) + model.objective_constant
        return BackendAnswer(SolverStatus.FEASIBLE, model.start.astype(np.float64), worth, worth)


class CallsTheStartOptimal(CbcMip):
    def solve(self, model, options):
        worth = float(model.objective @ model.start) + model.objective_constant
        return BackendAnswer(SolverStatus.OPTIMAL, model.start.astype(np.float64), worth)


class TellsNoSeconds(CbcMip):
    def solve(self, model, options):
        return replace(super().solve(model, options), build_s=None)


class _Unreadable:
    def __reduce__(self):
        return (int, ("no number",))


class CannotBeRead(CbcMip):
    def solve(self, model, options):
        return replace(super().solve(model, options), message=_Unreadable())


class TellsItsOptions(CbcMip):
    """Has no answer, and says what it was asked with."""

    def solve(self, model, options):
        memory = resource.getrlimit(resource.RLIMIT_AS)[0]
        return BackendAnswer(SolverStatus.NO_SOLUTION, message=f"{options}, start {model.start is not None}, {memory}")


class TakesItsTimeToBuild(CbcMip):
    def solve(self, model, options):
        time.sleep(0.3)
        return replace(super().solve(model, options), build_s=0.3)


class AnswersTooFewColumnsWithoutSets(AnswersTooFewColumns):
    capabilities = Capabilities(sos=False)
