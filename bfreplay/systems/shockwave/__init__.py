"""Shockwave (NSDI'23): jobs whose batch size changes while they train, and a planner that looks rounds ahead."""
