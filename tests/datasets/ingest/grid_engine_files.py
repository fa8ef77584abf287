"""Files of Grid Engine's accounting made by hand, and a generator of random ones. Times are seconds after ``T``."""

T = 1_700_000_000  # 2023-11-14T22:13:20Z
RESERVATION = ("0", "0")  # arid and ar_submission_time: since 6.2, not in 6.1
FURTHER = ("NONE", "NONE", "1048576", "524288", "login1", "/home/ann", "qsub -pe mpi 8 run.sh", "3599.7", "12", "NONE")
"""Univa's job_class, qdel_info, maxrss, maxpss, submit_host, cwd, submit_cmd, wallclock, ioops, bound_cores."""


DEFAULTS = {
    "name": "run",
    "owner": "ann",
    "group": "staff",
    "account": "sge",
    "queue": "all.q",
    "failed": 0,
    "exit_status": 0,
    "pe": "NONE",
    "slots": 1,
    "task": 0,
    "category": "NONE",
    "slave": "NONE",  # pe_taskid
    "after": RESERVATION,
    "unit": 1,  # of times: 1000 for milliseconds
}


def line(job, host, start, end, **fields):
    """Return a line; ``None`` is the time 0, and text stands as it is. ``fields`` are some of ``DEFAULTS``."""
    assert fields.keys() <= DEFAULTS.keys()
    field = DEFAULTS | fields
    is_master, has_times = field["slave"] == "NONE", isinstance(start, int | float) and isinstance(end, int | float)
    submitted = start - 60 if is_master and has_times else None
    times = [_stamp(time, field["unit"]) for time in (submitted, start, end)]
    rusage = [end - start if has_times else 0, "1.500000", "0.250000", "2048.000000", *[0] * 7, "8.000000", *[0] * 6]
    parts = [field["queue"], host, field["group"], field["owner"], field["name"], job, field["account"]]
    parts += [0, *times, field["failed"], field["exit_status"], *rusage, "NONE", "defaultdepartment"]
    parts += [field["pe"], field["slots"], field["task"], "1.750000", "0.500000", "0.012000", field["category"]]
    parts += ["0.000000", field["slave"], "1073741824.000000", *field["after"]]
    return ":".join(map(str, parts))


def slave(job, host, start, end, number=1, **fields):
    """Return the line of a slave task; its submission time is 0."""
    return line(job, host, start, end, slave=f"{number}.{host}", pe="mpi", **fields)


def univa(job, host, start, end, **fields):
    """Return a line of Univa Grid Engine 8.2 or later: milliseconds, and further fields."""
    return line(job, host, start, end, after=(*RESERVATION, *FURTHER), unit=1_000, **fields)


def file(*lines):
    return "".join(f"{one}\n" for one in lines)


def cut_after(text, n_fields):
    """Return the beginning of a line: so many fields, and half of the next."""
    parts = text.split(":")
    return ":".join([*parts[:n_fields], parts[n_fields][: len(parts[n_fields]) // 2]])


def _stamp(time, unit):
    return 0 if time is None else time if isinstance(time, str) else round((T + time) * unit)


OLD = {"after": ()}  # the 43 fields of 6.1
HARD = "-u ann -l h_rt=1:00:00,s_rt=0:59:00,h_vmem=2G -soft -l q=*@@big"

CLASSIC = file(
    "# Version: 6.2u5",
    "#",
    line(501, "n1", 0, 3_600),
    line(502, "n2", 100, 700, name="post:run", **OLD),
    line(503, "n3", 200, 800, name="vgl0:00005882:2", account="chem:x", category=HARD),
    line(504, "n1", 3_600, 4_200, account="proj:sub:", category="-l h_rt=1:00:00", **OLD),
    line(505, "n2", 900, 1_800, task=1),
    line(505, "n3", 900, 1_500, task=2, category="-l h_rt=0:30:00", **OLD),
    line(505, "n1", 5_000, 5_600, task=10, name="a:b:c", account="2024"),
    "",
    line(506, "UNKNOWN", None, None, failed=26, queue="UNKNOWN"),
    line(507, "n2", None, 2_000, failed=1),
    line(508, "n2", 2_000, 2_900, failed=100, exit_status=137),
    line(509, "n3", 2_000, 2_500, failed=25),
    line(509, "n1", 6_000, 9_000),
    line(510, "n2", 3_000, 3_000, failed=8),
    line(510, "n3", 3_000, 3_400),
)
"""Grid Engine 6.1 and 6.2: colons in names, array tasks, jobs that never started, failed ones, a rescheduled one."""

PARALLEL = file(
    slave(601, "n2", 10, 900, slots=8),
    line(603, "n9", 0, 950),
    slave(602, "n5", 20, 960, 1, slots=8, category="-l h_rt=2:00:00 -pe mpi 8"),
    slave(601, "n3", 15, 990, 2, slots=8),
    line(601, "n1", 0, 1_000, pe="mpi", slots=8),
    slave(602, "n6", 25, 1_001, 1, slots=8),  # one second after its master: clocks differ
    slave(602, "n6", 30, 400, 2, slots=8),  # two tasks on one host
    line(602, "n4", 5, 1_000, pe="mpi", slots=8, category="-l h_rt=2:00:00 -pe mpi 8"),
    slave(604, "n8", 1_110, 1_190, task=1, slots=4),
    slave(604, "n9", 1_115, 1_195, task=2, slots=4),
    line(604, "n7", 1_100, 1_200, pe="mpi", slots=4, task=1),
    line(604, "n7", 1_100, 1_200, pe="mpi", slots=4, task=2),
    slave(605, "n2", 2_010, 2_100, slots=4),
    line(605, "n1", 2_000, 2_110, pe="mpi", slots=4, failed=25),
    slave(605, "n4", 3_010, 3_490, slots=4),
    line(605, "n3", 3_000, 3_500, pe="mpi", slots=4),
    slave(606, "n6", None, None, failed=8, slots=4),
    line(606, "n5", 4_000, 4_500, pe="mpi", slots=1),
    slave(607, "n7", 5_010, 5_400, slots=4),
    slave(607, "n7", 5_010, 5_400, slots=4),  # the file was joined with itself
    line(607, "n6", 5_000, 5_500, pe="mpi", slots=4),
    line(607, "n6", 5_000, 5_500, pe="mpi", slots=4),
)
"""Parallel jobs by several lines: mixed, an array of them, a rescheduled one, one slave that never started."""

SUMMARY = file(
    line(701, "n1", 0, 7_200, pe="mpi", slots=64, category="-pe mpi 64"),
    line(702, "n5", 60, 3_600, pe="smp", slots=16),
    line(703, "n6", 60, 3_600, pe="mpi", slots=17),
    line(704, "n7", 60, 3_600),
)
"""accounting_summary: one line a job, of its master host, with all its slots."""

UNIVA = file(
    "# Version: UGE 8.6.8",
    univa(801, "n1", 0.123, 3_600.5),
    univa(802, "n2", 10, 20.001, name="a:b", category="-l h_rt=1:00:00"),
    univa(803, "n3", 30, 90, task=4),
    univa(804, "n4", None, None, failed=26),
    univa(805, "n6", 101.5, 190, slave="1.n6", pe="mpi", slots=8),
    univa(805, "n5", 100, 200.25, pe="mpi", slots=8),
    univa(806, "n7", 300, 400, pe="mpi", slots=32),
    line(807, "n8", 500, 600, unit=1_000, after=(*RESERVATION, *FURTHER[:6], "qsub -l h_rt=1:00:00 -N a:b", "9", "1")),
)
"""Univa Grid Engine 8.2 and later: milliseconds, and fields after the 45."""

UPGRADED = file(
    line(901, "n1", 0, 1_000, category="-l h_rt=1:00:00"),
    line(902, "n2", 500, 1_500, **OLD),
    line(905, "n3", 600, 1_600, after=(*RESERVATION, "job_class")),
    univa(903, "n1", 2_000.75, 3_000),
    univa(904, "n3", 2_500, 2_600.5, task=3),
)
"""One file before and after the change to milliseconds."""

GOOD = line(1_001, "n1", 0, 1_000, category=HARD)
HOSTILE = file(
    "# Version: 8.1.9",
    GOOD,
    *(cut_after(line(1_002, "n2", 0, 1_000, category=HARD), n_fields) for n_fields in (0, 4, 7, 9, 12, 30, 34, 36, 39)),
    line(1_002, "n2", 0, 1_000, category=HARD).split(",s_rt")[0],
    "\x00\x01\x7f:\x1b[31m:\udcff\udcfe:" + ":" * 60,
    ":" * 44,
    "x",
    "not:a:record",
    line(1_003, "n2", "99999999999999999999", "99999999999999999999"),
    line(1_004, "n2", 0, "9" * 5_000),
    line(1_005, "n2", "-5", 1_000),
    line(1_006, "n2", 0, "-5"),
    line(1_007, "n2", 1_000, 999),
    line(1_008, "", 0, 1_000),
    line(1_009, "n" * 10_000, 0, 1_000),
    line(1_010, "n\x1b[31m2", 0, 1_000),
    line(1_020, " n2 ", 0, 1_000),
    line(1_011, "n3", 10, 1_000, name="", owner="", group="", account="", queue=""),
    line(1_012, "n4", 20, 1_000, name="x" * 10_000, account="y:" * 5_000, category="-l " + "z=1:0:0," * 2_000),
    line(1_013, "n5", 30, 1_000, name="été \u2028 名", owner="\udce9t\udce9"),
    line("", "n2", 0, 1_000),
    line("job", "n2", 0, 1_000),
    line(1_014, "n2", "soon", 1_000),
    line(1_015, "n2", 0, 1_000, slots="many"),
    line(1_016, "n6", 40, 1_000, slots=0),
    line(1_017, "n2", 0, 1_000, name="\t", account=" "),
    line(99_999_999_999_999_999_999, "n7", 50, 1_000),
    line(1_018, "n8", 60, 1_000) + "\r",
    line(1_019, "n9", 70, 1_000),
)
"""Cut lines, bytes that are no text, huge and negative numbers, ends before starts, empty and endless names."""

UNSETTLED = {
    "slaves_without_master": file(
        slave(1_101, "n2", 20, 900, slots=8), slave(1_101, "n1", 10, 1_000, slots=8), line(1_102, "n3", 0, 500)
    ),
    "slave_of_no_length": file(slave(1_201, "n2", 500, 500, slots=2), line(1_201, "n1", 0, 1_000, pe="mpi", slots=2)),
    "host_unknown": file(line(1_601, "UNKNOWN", 0, 500, queue="UNKNOWN"), line(1_602, "n2", 0, 500)),
    "usage_that_is_no_number": file(line(1_701, "n1", 0, 500).replace("1.500000", "-nan").replace("0.012000", "inf")),
    "end_time_0": file(line(1_301, "n1", 0, None, failed=100), line(1_302, "n2", 0, 500)),
    "fewer_hosts_than_slots_need": file(
        slave(1_401, "n2", 10, 900, slots=64), line(1_401, "n1", 0, 1_000, pe="mpi", slots=64)
    ),
    "more_slots_than_any_machine": file(line(1_501, "n1", 0, 500, slots=4_294_967_295), line(1_502, "n2", 0, 500)),
}
"""Small files of what the manual leaves open."""

FILES = {
    "classic": CLASSIC,
    "parallel": PARALLEL,
    "summary": SUMMARY,
    "univa": UNIVA,
    "upgraded": UPGRADED,
    "hostile": HOSTILE,
}

SLOTS = 16
"""Slots of a node in random files."""


def random_accounting(rng, n_jobs):
    """Return a file of ``n_jobs`` jobs on 40 nodes, its lines in order of their ends as the queue master writes them.

    Of five jobs two are serial, one an array, one parallel by several lines, one by one line. Some fail, are
    rescheduled or never start, and some lines of jobs on one host are cut. A file is of 6.1, 6.2 or Univa.
    """
    write, fields = rng.choice([(line, {}), (line, OLD), (univa, {})])
    lines = []
    now, most_numbers = 0.0, max(1, n_jobs - 3)  # numbers of jobs begin again, a year later
    for count in range(n_jobs):
        now += rng.expovariate(1 / 60)
        if count and count % most_numbers == 0:
            now += 31_536_000
        start = round(now, 3) if write is univa else round(now)
        times = [(start, start + rng.randint(5, 20_000))]
        job = 1 + count % most_numbers
        names = dict(fields, name=rng.choice(["run", "a:b", "t:1:2", ""]), account=rng.choice(["sge", "x:y", "7"]))
        names["category"] = rng.choice(["NONE", "-l h_rt=1:00:00", HARD, "-u ann "])
        kind = rng.choice(["serial", "serial", "array", "several lines", "one line"])
        if rng.random() < 0.05:
            lines.append((start, write(job, "UNKNOWN", None, None, failed=26, **names)))
            continue
        if rng.random() < 0.1:
            begin = times[0][1] + rng.randint(10, 500)
            times.append((begin, begin + rng.randint(5, 5_000)))
        for number, (begin, end) in enumerate(times):
            names["failed"] = 25 if number + 1 < len(times) else rng.choice([0, 0, 0, 1, 100])
            lines += _job_lines(rng, write, job, kind, begin, end, names)
    lines.sort(key=lambda timed: timed[0])
    texts = [
        cut_after(text, rng.randint(1, 38)) if ":mpi:" not in text and rng.random() < 0.02 else text
        for _, text in lines
    ]
    return file("# Version: made by random_accounting", *texts)


def _job_lines(rng, write, job, kind, start, end, names):
    """Return (end, line) of all lines of one run."""
    hosts = [f"cn{node:02d}.cluster" for node in rng.sample(range(40), rng.randint(1, 6))]
    if kind == "array":
        tasks = range(1, rng.randint(2, 5))
        return [(end + task, write(job, rng.choice(hosts), start, end + task, task=task, **names)) for task in tasks]
    if kind == "serial":
        return [(end, write(job, hosts[0], start, end, **names))]
    names = dict(names, pe="mpi", slots=rng.randint(2, SLOTS * len(hosts)))
    timed = [(end, write(job, hosts[0], start, end, **names))]
    if kind == "several lines":
        for number, host in enumerate(rng.choices(hosts[1:], k=8) + hosts[1:] if len(hosts) > 1 else hosts, 1):
            begin = start + rng.randint(0, (round(end) - round(start)) // 2)
            stop = max(begin + 1, end - rng.randint(0, 60))
            timed.append((stop, write(job, host, begin, stop, slave=f"{number}.{host}", **names)))
    return timed
