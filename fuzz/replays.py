"""Random replays, checked by a second engine that shares no code with bfreplay's.

Run from the repository's root::

    python fuzz/replays.py --first 0 --number 20000 --processes 2
    python fuzz/replays.py --portions --first 0 --number 5000
    python fuzz/replays.py --costs --first 0 --number 5000

Each seed makes a log, jobs, a policy and options (tests/replay/random_cases.py); tests/replay/second_engine.py
computes the run again. With ``--portions`` it is the other family: policies of Gavel, Shockwave and ElasticFlow, nodes
left alone and notice, and logs that come in portions, to sessions that are saved and restored. With ``--costs``, for
either family, all jobs have costs that BFTrainer's model does not know. A seed that fails is printed with what differs;
to look at one again::

    python fuzz/replays.py --first SEED --number 1

Exit code 1 when any seed failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CHUNK = 100


def check_seeds(
    first: int, number: int, portions: bool = False, costs: bool = False
) -> tuple[Counter[str], list[tuple[int, str]]]:
    """Replay and check ``number`` seeds; returns how many of each policy, and what failed."""
    sys.path.insert(0, str(ROOT))
    from tests.replay import random_replays

    run_and_check = random_replays.run_and_check_portions if portions else random_replays.run_and_check

    policies: Counter[str] = Counter()
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + number):
            try:
                policies[run_and_check(seed, Path(folder), with_costs=costs)] += 1
            except Exception:  # an error of any kind is a finding
                failed.append((seed, traceback.format_exc(limit=-3)))
    return policies, failed


def main() -> int:
    """Check the seeds that the command line names."""
    parser = argparse.ArgumentParser(description="Check random replays by a second engine.")
    parser.add_argument("--first", type=int, default=0, help="first seed (default: 0)")
    parser.add_argument("--number", type=int, default=1000, help="how many seeds (default: 1000)")
    parser.add_argument("--portions", action="store_true", help="the family with portions and published systems")
    parser.add_argument("--costs", action="store_true", help="jobs with costs that BFTrainer's model does not know")
    parser.add_argument("--processes", type=int, default=2, help="worker processes (default: 2)")
    given = parser.parse_args()
    starts = range(given.first, given.first + given.number, CHUNK)
    sizes = [min(CHUNK, given.first + given.number - start) for start in starts]
    policies: Counter[str] = Counter()
    n_failed = 0
    with ProcessPoolExecutor(given.processes) as workers:
        for done, failed in workers.map(check_seeds, starts, sizes, repeat(given.portions), repeat(given.costs)):
            policies += done
            n_failed += len(failed)
            for seed, text in failed:
                print(f"seed {seed}:\n{text}")
            print(f"{policies.total() + n_failed:,} replays, {n_failed} bad", file=sys.stderr)
    print(f"{policies.total() + n_failed:,} replays, seeds {given.first} to {given.first + given.number - 1}:")
    for name, number in sorted(policies.items()):
        print(f"  {number:>7,} {name}")
    print(f"{n_failed} bad")
    return 1 if n_failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
