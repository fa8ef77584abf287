"""Three ways to decide, on the same log and jobs: ``python examples/compare_policies.py``."""

import bfreplay

log = bfreplay.load_events(bfreplay.sample_events_path())
jobs = bfreplay.load_jobs(bfreplay.sample_jobs_path())
policies = {
    "exact optimum": bfreplay.BFTrainerPolicy(t_fwd_s=120),
    "published model's optimum": bfreplay.BFTrainerPolicy(120, bfreplay.solver_of("exact", "published")),
    "equal share": bfreplay.EqualSharePolicy(),
}
print(f"{'policy':<28}{'U':>7}{'rescales':>10}{'preemptions':>13}{'rescaling':>11}")
for name, policy in policies.items():
    run = bfreplay.replay_log(log, jobs, policy, unlimited_work=True)
    hours = run.summary["ledger"]["node_hours"]
    rescales = run.summary["n_scale_ups"] + run.summary["n_scale_downs"]
    share = hours["rescaling"] / hours["idle"]
    print(f"{name:<28}{run.u:>7.3f}{rescales:>10,}{run.summary['n_preemptions']:>13,}{share:>11.1%}")
