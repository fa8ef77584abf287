"""A follower's folder: the log, the run of it, and what a kill, a second one or another's folder does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from scripted import S, ScriptedClock, ScriptedSource, T, accounted_log

from bfreplay import ElasticJob, TabulatedCurve, load_events, replay_log
from bfreplay.datasets.times import iso_utc
from bfreplay.errors import InputError, OutputExistsError
from bfreplay.live import feed as feed_module
from bfreplay.live import follower as follower_module
from bfreplay.live import growing_file
from bfreplay.live.feed import PolledStates
from bfreplay.live.follower import Follower, FollowSettings
from bfreplay.live.growing_file import GrowingFile
from bfreplay.result_folders.live import LiveStatus

SETTINGS = FollowSettings(poll_s=1.0, hold_back_s=3.0, checkpoint_every_s=1e6)
OPTIONS = {"t_fwd": 60.0}


def jobs(*names: str) -> list[ElasticJob]:
    curve = TabulatedCurve([0, 1, 2, 4], [0.0, 100.0, 180.0, 300.0])
    return [
        ElasticJob(
            name=name,
            min_nodes=1,
            max_nodes=4,
            scale_up_cost_s=2.0,
            scale_down_cost_s=1.0,
            work_samples=1e9,
            submit_us=0,
            throughput=curve,
        )
        for name in names or ("A", "B")
    ]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ScriptedClock:
    clock = ScriptedClock()
    monkeypatch.setattr(feed_module, "monotonic_ns", lambda: round(clock.now_s * 1e9))
    return clock


SCRIPT = {
    1: {"a": "idle", "b": "busy", "c": "idle"},
    3: {"a": "idle", "b": "idle", "c": "busy"},
    7: {"a": "busy", "b": "idle", "c": "idle"},
    9: {"a": "idle", "b": "planned", "c": "idle"},
    14: {"a": "idle", "b": "idle", "c": "idle"},
}
LAST_S = 20


def follow(folder: Path, clock: ScriptedClock, first_s: int, last_s: int, *, stops: bool = True, **changes) -> Follower:
    """Follow the script from one poll to another."""
    clock.now_s = first_s
    source = ScriptedSource(clock, script_at(first_s))
    source.log = changes.pop("log", None)
    options = {"jobs": jobs(), "settings": SETTINGS, "tell": print, **changes}
    follower = Follower(PolledStates(source, clock, 1.0), folder, options.pop("jobs"), OPTIONS, **options)
    for at_s in range(first_s + 1, last_s + 1):
        clock.now_s, source.states = at_s, script_at(at_s)
        follower.poll()
    if stops:
        follower.stop()
        follower.__exit__(None, None, None)
    return follower


def script_at(at_s: int) -> dict[str, str]:
    return SCRIPT[max(time_s for time_s in SCRIPT if time_s <= at_s)]


def kill(follower: Follower) -> None:
    """Leave a follower as a kill does: what it holds in memory is gone, locks are free, nothing is tidied."""
    folder = follower._folder
    copy = folder.with_name("killed")
    shutil.copytree(folder, copy)
    follower.__exit__(None, None, None)
    shutil.rmtree(folder)
    copy.rename(folder)


def tables(run: Path) -> dict[str, bytes]:
    return {
        file.name: file.read_bytes() for file in run.iterdir() if file.name not in ("session.json", "timings.parquet")
    }


def test_the_log_has_every_change_at_its_poll_up_to_the_hold_back(tmp_path, clock):
    follow(tmp_path / "live", clock, 1, LAST_S)
    rows = (tmp_path / "live" / "log.csv").read_text().splitlines()
    assert rows == [
        "time,node,state,cause",
        *(f"{iso_utc(T + S)},{node},{word},window_begin" for node, word in SCRIPT[1].items()),
        f"{iso_utc(T + 3 * S)},b,idle,",
        f"{iso_utc(T + 3 * S)},c,busy,",
        f"{iso_utc(T + 7 * S)},a,busy,",
        f"{iso_utc(T + 7 * S)},c,idle,",
        f"{iso_utc(T + 9 * S)},a,idle,",
        f"{iso_utc(T + 9 * S)},b,planned,",
        f"{iso_utc(T + 14 * S)},b,idle,",
    ]
    assert load_events(tmp_path / "live" / "log.csv").window_end_us == T + (LAST_S - 3) * S


def test_the_log_replayed_gives_the_bytes_of_the_run_folder(tmp_path, clock):
    follow(tmp_path / "live", clock, 1, LAST_S)
    replay_log(tmp_path / "live" / "log.csv", jobs(), out=tmp_path / "again", **OPTIONS)
    assert tables(tmp_path / "live" / "run") == tables(tmp_path / "again")
    assert "decisions.parquet" in tables(tmp_path / "again")


def test_a_change_at_the_very_end_of_the_log_waits_and_the_bytes_are_the_same(tmp_path, clock):
    follow(tmp_path / "live", clock, 1, 17)  # the hold-back ends at 14 s, where a node changes
    assert "14Z" not in (tmp_path / "live" / "log.csv").read_text().splitlines()[-1]
    replay_log(tmp_path / "live" / "log.csv", jobs(), out=tmp_path / "again", **OPTIONS)
    assert tables(tmp_path / "live" / "run") == tables(tmp_path / "again")


@pytest.mark.parametrize("checkpoint_at_s", [2, 6, None])
def test_a_killed_follower_goes_on_to_the_same_log_and_run(tmp_path, clock, checkpoint_at_s):
    follow(tmp_path / "whole", clock, 1, LAST_S)
    follower = follow(tmp_path / "live", clock, 1, checkpoint_at_s or 1, stops=False)
    if checkpoint_at_s:
        follower.checkpoint()
    for at_s in range((checkpoint_at_s or 1) + 1, 14):
        clock.now_s = at_s
        follower._feed._source.states = script_at(at_s)
        follower.poll()
    kill(follower)
    follow(tmp_path / "live", clock, 13, LAST_S)
    assert (tmp_path / "live" / "log.csv").read_text() == (tmp_path / "whole" / "log.csv").read_text()
    assert tables(tmp_path / "live" / "run") == tables(tmp_path / "whole" / "run")


def test_rows_of_a_killed_process_beyond_the_metadata_are_ignored_and_then_removed(tmp_path, clock):
    follow(tmp_path / "whole", clock, 1, LAST_S)
    follower = follow(tmp_path / "live", clock, 1, 13, stops=False)
    follower.checkpoint()
    kill(follower)
    log_file = tmp_path / "live" / "log.csv"
    n_events = len(load_events(log_file).to_frame())
    log_file.write_text(log_file.read_text() + f"{iso_utc(T + 12 * S)},a,down,\n")
    assert len(load_events(log_file).to_frame()) == n_events
    log_file.write_text(log_file.read_text() + "2023-11-1")
    follow(tmp_path / "live", clock, 13, LAST_S)
    assert log_file.read_text() == (tmp_path / "whole" / "log.csv").read_text()


def test_a_time_without_a_follower_is_filled_and_the_run_names_it(tmp_path, clock):
    follow(tmp_path / "live", clock, 1, 12)
    log = accounted_log(9, 100, {"a": "idle", "b": "idle", "c": "idle"}, (50, "a", "busy"), (60, "a", "idle"))
    follow(tmp_path / "live", clock, 100, 110, log=log)
    text = (tmp_path / "live" / "log.csv").read_text()
    assert f"{iso_utc(T + 50 * S)},a,busy,\n{iso_utc(T + 60 * S)},a,idle,\n" in text
    run = replay_log(tmp_path / "live" / "log.csv", jobs(), out=tmp_path / "again", **OPTIONS)
    assert tables(tmp_path / "live" / "run") == tables(tmp_path / "again")
    assert any(
        "gaps in which the cluster was not followed" in warning
        for warning in run.record.inputs.events.metadata.log_warnings.sentences()
    )
    (span,) = run.record.inputs.events.metadata.notes["followed"]["spans"]
    assert (span["start"], span["end"]) == (iso_utc(T + 9 * S), iso_utc(T + 101 * S))


def test_a_follower_that_was_stopped_goes_on_with_more_jobs(tmp_path, clock):
    follow(tmp_path / "live", clock, 1, 10)
    log = accounted_log(7, 30, script_at(20))
    follower = follow(tmp_path / "live", clock, 30, 40, log=log, jobs=jobs("A", "B", "C"))
    assert set(follower._session.holders()) == {"A", "B", "C"}


def test_other_options_make_the_run_anew_from_the_log(tmp_path, clock):
    follow(tmp_path / "live", clock, 1, 10)
    told: list[str] = []
    clock.now_s = 10
    source = ScriptedSource(clock, script_at(10))
    with Follower(
        PolledStates(source, clock, 1.0), tmp_path / "live", jobs(), {"t_fwd": 30.0}, SETTINGS, tell=told.append
    ) as follower:
        follower.stop()
    assert told[1].startswith("The run is replayed from the log")
    replay_log(tmp_path / "live" / "log.csv", jobs(), out=tmp_path / "again", t_fwd=30.0)
    assert tables(tmp_path / "live" / "run") == tables(tmp_path / "again")


def test_a_run_made_anew_has_the_nodes_of_the_log_in_its_order(tmp_path, clock, monkeypatch):
    late = {**SCRIPT[1], "z": "unknown"}
    monkeypatch.setitem(SCRIPT, 3, late)
    monkeypatch.setitem(SCRIPT, 7, {**late, "y": "idle"})
    monkeypatch.setitem(SCRIPT, 9, {**late, "y": "busy"})
    monkeypatch.delitem(SCRIPT, 14)
    follow(tmp_path / "live", clock, 1, 14)
    assert load_events(tmp_path / "live" / "log.csv").nodes == ("a", "b", "c", "z", "y")
    follow(tmp_path / "live", clock, 14, LAST_S, jobs=jobs("A"))
    log = load_events(tmp_path / "live" / "log.csv")
    assert log.nodes == ("a", "b", "c", "z", "y")
    replay_log(log, jobs("A"), out=tmp_path / "again", **OPTIONS)
    assert tables(tmp_path / "live" / "run")["decisions.parquet"] == tables(tmp_path / "again")["decisions.parquet"]


def test_a_checkpoint_later_than_the_log_is_not_gone_on_with(tmp_path, clock):
    folder = tmp_path / "live"
    follow(folder, clock, 1, 8)
    older = {file: file.read_bytes() for file in folder.glob("log.csv*")}
    follow(folder, clock, 8, 14)
    for file, content in older.items():
        file.write_bytes(content)
    told: list[str] = []
    follow(folder, clock, 14, LAST_S, tell=told.append)
    assert told[-1:] == [
        "The run is replayed from the log, as its last state does not fit: the last checkpoint is of a later time."
    ]
    replay_log(folder / "log.csv", jobs(), out=tmp_path / "again", **OPTIONS)
    assert tables(folder / "run") == tables(tmp_path / "again")


def test_the_status_goes_on_with_the_last_spans_and_the_cluster_of_before(tmp_path, clock, monkeypatch):
    follow(tmp_path / "live", clock, 1, 5)
    for start_s in range(100, 100 + 12 * 50, 50):
        follow(tmp_path / "live", clock, start_s, start_s + 5)
    monkeypatch.setattr(ScriptedSource, "cluster", None)  # the scheduler does not answer when following goes on
    follow(tmp_path / "live", clock, 703, 704)
    status = LiveStatus.from_text((tmp_path / "live" / "status.json").read_bytes())
    assert status.cluster == "tiny"
    assert len(status.spans) == 10
    assert status.spans[-1].end == iso_utc(T + 704 * S)
    notes = load_events(tmp_path / "live" / "log.csv").metadata.notes["followed"]
    assert len(notes["spans"]) == 13


def test_nodes_that_appear_are_numbered_last_and_those_that_vanish_are_unknown(tmp_path, clock, monkeypatch):
    monkeypatch.setitem(SCRIPT, 9, {"a": "idle", "c": "idle", "Z": "idle"})
    monkeypatch.delitem(SCRIPT, 14)
    follow(tmp_path / "live", clock, 1, LAST_S)
    log = load_events(tmp_path / "live" / "log.csv")
    assert log.nodes == ("a", "b", "c", "Z")
    text = (tmp_path / "live" / "log.csv").read_text()
    assert f"{iso_utc(T + 9 * S)},b,unknown,\n{iso_utc(T + 9 * S)},Z,idle,\n" in text
    replay_log(tmp_path / "live" / "log.csv", jobs(), out=tmp_path / "again", **OPTIONS)
    assert tables(tmp_path / "live" / "run") == tables(tmp_path / "again")


def test_a_first_answer_that_is_old_when_the_loops_are_compiled_is_asked_again(tmp_path, clock, monkeypatch):
    source = ScriptedSource(clock, script_at(1))
    monkeypatch.setattr(follower_module, "monotonic", lambda: clock.now_s)
    opened = []

    def open_session(log, *arguments, **options):
        opened.append(log.window_start_us)
        clock.now_s += 60 if len(opened) == 1 else 0
        return real_open_session(log, *arguments, **options)

    real_open_session = follower_module.open_session
    monkeypatch.setattr(follower_module, "open_session", open_session)
    with Follower(PolledStates(source, clock, 1.0), tmp_path / "live", jobs(), OPTIONS, SETTINGS) as follower:
        assert opened == [T, T + 60 * S]
        assert follower._session.events.window_start_us == T + 60 * S


def test_a_run_folder_or_a_status_that_cannot_be_written_ends_nothing(tmp_path, clock, monkeypatch):
    def fail(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    told: list[str] = []
    with monkeypatch.context() as full:
        full.setattr(follower_module.shutil, "copytree", fail)
        full.setattr(follower_module, "write_whole", fail)
        follow(tmp_path / "live", clock, 1, 12, tell=told.append)
    assert [text.split(":")[0] for text in told] == ["The status cannot be published", "The run folder was not made"]
    follow(tmp_path / "live", clock, 12, LAST_S)
    assert (tmp_path / "live" / "run").exists()


def test_a_node_that_appears_while_the_clock_is_behind_is_unknown_so_far(tmp_path, clock):
    follower = follow(tmp_path / "live", clock, 1, 12, stops=False)
    clock.now_s, follower._feed._source.states = 8, {**script_at(12), "new": "idle"}
    status = follower.poll()
    assert (status.idle, status.by_state["unknown"]) == (0, 3)
    assert status.partitions[0].by_state == {"unknown": 4}
    assert "the log waits for it" in status.problem
    follower.__exit__(None, None, None)


def test_a_run_folder_that_takes_long_is_written_at_the_end_only(tmp_path, clock, monkeypatch):
    written = []

    def write_slowly(_follower):
        written.append(clock.now_s)
        clock.now_s += 9

    told: list[str] = []
    monkeypatch.setattr(follower_module, "monotonic", lambda: clock.now_s)
    monkeypatch.setattr(Follower, "_write_run", write_slowly)
    follow(tmp_path / "live", clock, 1, 40, settings=FollowSettings(1.0, 3.0, 5.0), tell=told.append)
    assert written == [6, 40]
    assert told == ["The run folder takes long by now: the next one is written when following ends."]


def test_two_followers_of_one_folder_are_one_too_many(tmp_path, clock):
    follower = follow(tmp_path / "live", clock, 1, 3, stops=False)
    with pytest.raises(InputError, match="another process follows into this folder"):
        follow(tmp_path / "live", clock, 3, 4)
    follower.__exit__(None, None, None)
    follow(tmp_path / "live", clock, 3, 4)


def test_a_folder_of_something_else_is_left_alone(tmp_path, clock):
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "thesis.tex").write_text("x")
    with pytest.raises(OutputExistsError, match="not the folder of a follower"):
        follow(tmp_path / "live", clock, 1, 2)
    assert [file.name for file in (tmp_path / "live").iterdir()] == ["thesis.tex"]


def test_a_folder_in_which_an_option_was_refused_is_used_with_another_one(tmp_path, clock):
    with pytest.raises(InputError, match="still to come"):
        Follower(
            PolledStates(ScriptedSource(clock, script_at(1)), clock, 1.0),
            *(tmp_path / "live", jobs(), {"policy": "foresight"}, SETTINGS),
        )
    assert follow(tmp_path / "live", clock, 3, LAST_S).has_log


def test_a_follower_that_was_stopped_before_anything_was_final_begins_anew(tmp_path, clock):
    assert not follow(tmp_path / "live", clock, 1, 2).has_log
    assert follow(tmp_path / "live", clock, 3, LAST_S).has_log


@pytest.mark.parametrize(
    "followed",
    [
        {"bytes": -5},
        {"bytes": True},
        {"bytes": 10**30},
        {"bytes": 100},
        {"bytes": 1.5},
        {"notes": [1]},
        {"spans": "x"},
        {"spans": [{"a": 1}]},
        {"spans": [{"kind": "gap", "start": "x", "end": "y", "words": "", "is_filled": True}]},
        None,
        [1],
    ],
)
def test_metadata_that_no_follower_wrote_are_refused_and_the_log_stays(tmp_path, clock, followed):
    follow(tmp_path / "live", clock, 1, 10)
    log, sidecar = (tmp_path / "live" / name for name in ("log.csv", "log.csv.meta.json"))
    text = log.read_bytes()
    document = json.loads(sidecar.read_text())
    own = document["notes"]["followed"]
    document["notes"]["followed"] = own | followed if isinstance(followed, dict) else followed
    sidecar.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"not written by follow|cannot be extended"):
        follow(tmp_path / "live", clock, 10, 12)
    assert log.read_bytes() == text


@pytest.mark.parametrize("ledger_since", ["yesterday", "9999-01-01T00:00:00Z"])
def test_a_status_of_nonsense_begins_the_ledger_anew(tmp_path, clock, ledger_since):
    follow(tmp_path / "live", clock, 1, 10)
    file = tmp_path / "live" / "status.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"ledger_since": ledger_since}))
    follow(tmp_path / "live", clock, 10, 12)
    assert LiveStatus.from_text(file.read_bytes()).ledger_since == iso_utc(T + 1 * S)


def test_a_clock_that_was_set_back_while_nobody_followed_is_said(tmp_path, clock):
    follow(tmp_path / "live", clock, 1, 20)
    clock.now_s = 5
    follower = follow(tmp_path / "live", clock, 5, 8)
    assert [span.kind for span in follower._feed.spans] == ["clock"]
    assert "set back by 12 s" in follower._feed.spans[0].words


def test_a_log_of_somebody_else_is_not_overwritten(tmp_path, clock):
    (tmp_path / "live").mkdir()
    (tmp_path / "live" / "log.csv").write_text("mine")
    with pytest.raises(OutputExistsError, match="not the folder of a follower"):
        follow(tmp_path / "live", clock, 1, 2)
    assert (tmp_path / "live" / "log.csv").read_text() == "mine"


def test_a_log_whose_metadata_are_gone_is_not_begun_anew(tmp_path, clock):
    follow(tmp_path / "live", clock, 1, 10)
    (tmp_path / "live" / "log.csv.meta.json").unlink()
    text = (tmp_path / "live" / "log.csv").read_text()
    with pytest.raises(InputError, match="its metadata are missing"):
        follow(tmp_path / "live", clock, 10, 12)
    assert (tmp_path / "live" / "log.csv").read_text() == text


def test_a_follower_that_was_killed_before_anything_was_final_begins_anew(tmp_path, clock):
    kill(follow(tmp_path / "live", clock, 1, 2, stops=False))
    assert not (tmp_path / "live" / "log.csv.meta.json").exists()
    follow(tmp_path / "live", clock, 3, 10)
    assert load_events(tmp_path / "live" / "log.csv").window_start_us == T + 3 * S


def test_a_log_that_was_cut_is_refused(tmp_path, clock):
    follow(tmp_path / "live", clock, 1, 10)
    log_file = tmp_path / "live" / "log.csv"
    log_file.write_text(log_file.read_text()[:-40])
    with pytest.raises(InputError, match="shorter than its metadata say"):
        follow(tmp_path / "live", clock, 10, 12)


def test_the_status_of_now_tells_both_answers_and_the_ledger(tmp_path, clock):
    follow(tmp_path / "live", clock, 1, 12)
    status = LiveStatus.from_text((tmp_path / "live" / "status.json").read_bytes())
    assert (status.idle, status.startable, status.by_state["planned"]) == (3, 2, 1)
    assert status.until == iso_utc(T + 9 * S)
    # a and c idle from 1 to 3 s, a and b to 7 s, b and c to 9 s
    assert status.ledger_node_hours["idle"] * 3600 == pytest.approx(2 * 2 + 2 * 4 + 2 * 2)
    assert status.decisions[-1].trigger == "pool"


def test_without_an_answer_the_status_knows_nothing_and_the_log_waits(tmp_path, clock):
    follower = follow(tmp_path / "live", clock, 1, 12, stops=False)
    size = (tmp_path / "live" / "log.csv").stat().st_size
    follower._feed._source.states = None
    clock.now_s = 14
    status = follower.poll()
    assert (status.problem, status.by_state["unknown"], status.idle) == ("nobody there", 3, 0)
    assert (tmp_path / "live" / "log.csv").stat().st_size == size
    follower.__exit__(None, None, None)


def test_a_growing_file_is_followed_row_by_row(tmp_path):
    file = tmp_path / "growing.csv"
    file.write_text(f"time,node,state\n{iso_utc(T)},a,idle\n{iso_utc(T)},b,busy\n")
    with Follower(GrowingFile(file), tmp_path / "live", jobs(), OPTIONS, FollowSettings(1.0, 1.0, 1e6)) as follower:
        assert follower.poll().n_nodes == 2
        with file.open("a") as stream:
            stream.write(f"{iso_utc(T + 5 * S)},b,idle\n{iso_utc(T + 9 * S)},a,bu")
        follower.poll()
        with file.open("a") as stream:
            stream.write(f"sy\n{iso_utc(T + 12 * S)},a,idle\n")
        follower.poll()
        follower.stop()
    rows = (tmp_path / "live" / "log.csv").read_text().splitlines()[3:]
    assert rows == [f"{iso_utc(T + 5 * S)},b,idle,", f"{iso_utc(T + 9 * S)},a,busy,"]


def test_nodes_of_the_first_time_that_are_written_later_appear(tmp_path):
    file = tmp_path / "growing.csv"
    file.write_text(f"time,node,state\n{iso_utc(T)},a,idle\n")
    feed = GrowingFile(file)
    assert feed.begin().nodes == ("a",)
    file.write_text(file.read_text() + f"{iso_utc(T)},b,busy\n")
    assert [node for _, node, _ in feed.poll().rows] == ["b"]


def test_a_long_file_is_caught_up_with_over_several_polls(tmp_path, monkeypatch):
    rows = [f"{iso_utc(T + at_s * S)},a,{word}\n" for at_s, word in enumerate(("idle", "busy") * 3)]
    file = tmp_path / "growing.csv"
    file.write_text("time,node,state\n" + "".join(rows))
    monkeypatch.setattr(growing_file, "_MOST_BYTES", 70)
    feed = GrowingFile(file)
    feed.begin()
    portions = [feed.poll() for _ in range(5)]
    times_us = [time_us for portion in portions if portion for time_us, _, _ in portion.rows]
    assert times_us == [T + at_s * S for at_s in range(1, 6)]
    assert portions[1].until_us < T + 5 * S


@pytest.mark.parametrize("line", ["x,a,idle", "2024-01-01T00:00:00Z,a,asleep", "2024-01-01T00:00:00Z,a"])
def test_a_row_of_a_growing_file_that_is_no_event_is_named(tmp_path, line):
    file = tmp_path / "growing.csv"
    file.write_text(f"time,node,state\n{iso_utc(T)},a,idle\n{line}\n")
    with pytest.raises(InputError, match="a row is no event") as caught:
        GrowingFile(file).begin()
    assert (caught.value.row, caught.value.value) == (2, line)
