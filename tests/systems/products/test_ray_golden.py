"""Decisions of Ray Train 2.60.0's own classes: recorded ones, and new ones where ray is installed."""

from __future__ import annotations

import gzip
import json
from types import SimpleNamespace
from unittest.mock import MagicMock

import numpy as np
import pytest

from bfreplay.systems.products.ray import ElasticRun, Reservations


@pytest.fixture(scope="module")
def golden(shared):
    with gzip.open(shared / "golden/products/ray-train.json.gz", "rt") as file:
        return json.load(file)


def by_node(reserved):
    """Resources of each node; ``None`` for a query that fails."""
    return None if reserved is None else [amounts for count, *amounts in reserved for _ in range(count)]


def test_every_recorded_decision_of_a_run_is_repeated(golden):
    n_same = 0
    for recorded in golden["policy_calls"]:
        needs = recorded["gpus_per_worker"], recorded["cpus_per_worker"]
        run = ElasticRun(recorded["min"], recorded["max"], recorded["interval_s"], needs=needs)
        for now, is_running, size, start, reserved, decision in recorded["calls"]:
            group = (size, start) if is_running else ()
            n_same += run.decide(now, lambda reserved=reserved: by_node(reserved), *group) == decision
    assert n_same == 10_000


def test_every_recorded_step_of_the_coordinator_is_repeated(golden):
    n_same = 0
    for recorded in golden["coordinator"]:
        n_nodes, asked = recorded["nodes_at_first"], {}
        coordinator = Reservations(expires_after=180.0)
        coordinator.tick(0.0, [recorded["gpus_per_node"]] * n_nodes)
        for now, what, argument, gpus in recorded["steps"]:
            match what:
                case "ask":
                    asked[argument[0]] = argument[1:]
                    coordinator.ask(now, *argument)
                case "renew":
                    for name in sorted(asked):
                        coordinator.ask(now, name, *asked[name])
                case "cancel":
                    del asked[argument]
                    coordinator.cancel(now, argument)
                case "nodes":
                    n_nodes = argument
                case "tick":
                    coordinator.tick(now, [recorded["gpus_per_node"]] * n_nodes)
            n_same += gpus == {name: coordinator.reserved.get(name, 0) * asked[name][1] for name in asked}
    assert n_same == 1_800


def test_a_renewed_request_keeps_its_place_and_one_that_has_expired_comes_last():
    coordinator = Reservations(expires_after=180.0)
    for now, name in ((0, "a"), (9, "b"), (99, "a")):
        coordinator.ask(now, name, 2)
    reserved = []
    for now in (100.0, 189.0):
        coordinator.tick(now, [1, 1, 1])
        reserved.append(coordinator.reserved)
    coordinator.ask(200.0, "b", 2)
    coordinator.ask(201.0, "a", 1)
    assert [*reserved, coordinator.reserved] == [{"a": 2, "b": 1}, {"a": 2}, {"a": 1, "b": 2}]


def test_workers_without_needs_may_always_be_started():
    assert ElasticRun(2, 7, interval=60.0, needs=(0.0, 0.0)).decide(0.0, lambda: [(0.0, 0.0)]) == 7


@pytest.mark.thorough
def test_ray_itself_decides_the_same_in_1000_new_states(monkeypatch):
    module = "ray.train.v2._internal.execution.scaling_policy.elastic"
    elastic = pytest.importorskip(module, reason="ray is not installed", exc_type=ImportError)
    generator, now, nodes, n_changes = np.random.default_rng(46), 0.0, None, 0

    def reserved(*_, **__):
        return {k: {"GPU": gpus, "CPU": cpus} for k, (gpus, cpus) in enumerate(nodes)}  # none: it raises

    monkeypatch.setattr(elastic, "time_monotonic", lambda: now)
    monkeypatch.setattr(elastic.ray, "get", reserved)
    for _ in range(20):
        least, more, interval = int(generator.integers(5)), int(generator.integers(40)), int(generator.choice([5, 60]))
        needs = {"GPU": int(generator.integers(3)), "CPU": float(generator.choice([0.0, 0.5, 2.0]))}
        of_ray = {
            "resources_per_worker": needs,
            "elastic_resize_monitor_interval_s": interval,
            "use_gpu": needs["GPU"] > 0,
        }
        rays = elastic.ElasticScalingPolicy(elastic.ScalingConfig(num_workers=(least, least + more), **of_ray))
        rays._coordinator_client = MagicMock()
        run, group = ElasticRun(least, least + more, interval, needs=tuple(needs.values())), ()
        for _ in range(50):
            now += generator.choice([0.0, 0.3, 0.999, 1.0, 2.0, interval - 1, interval, 600.0])
            nodes = (
                generator.integers(9, size=(generator.integers(12), 2)).tolist() if generator.random() < 0.9 else None
            )
            if group:
                state = SimpleNamespace(num_workers=group[0], start_time=group[1])
                decision = rays.make_decision_for_running_worker_group(state, None)
            else:
                decision = rays.make_decision_for_non_running_worker_group()
            size = getattr(decision, "num_workers", None)
            assert run.decide(now, lambda nodes=nodes: nodes, *group) == size
            n_changes += size is not None
            if size is not None:
                group = size, now + generator.choice([0.0, 8.0])
            elif generator.random() < 0.1:
                group = ()
    assert n_changes > 100
