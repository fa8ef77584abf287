"""Small changes of valid logs that contradict what else the log says: each is told by its own sentence."""

import pytest

from bfreplay.datasets.ingest import batsim, flux, lsf
from bfreplay.datasets.ingest.cobalt import cobalt_jobs as cobalt
from bfreplay.datasets.ingest.hostlists import expand_nodes
from bfreplay.datasets.ingest.occupancy.import_report import UNREADABLE
from bfreplay.datasets.ingest.pbs import runs as pbs
from bfreplay.datasets.ingest.read_log import read_log
from bfreplay.datasets.ingest.slurm import node_states
from bfreplay.datasets.ingest.slurm import sacct_rows as slurm
from bfreplay.datasets.ingest.table import table_jobs as table
from bfreplay.errors import InputError
from tests.datasets.ingest.small_logs_of_formats import SMALL_LOGS, US, T


def read(name, folder, old, new):
    """The log with the first ``old`` replaced."""
    log = SMALL_LOGS[name]
    assert old in log.text
    return read_log(log.write(folder, log.text.replace(old, new, 1).encode()), log.reader, log.options)


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("sacct", "|1|cn3|", "|?|cn3|", slurm.COUNT_UNREADABLE),
        ("sacct", "|1|cn2|0\n", "|1|0|cn2\n", slurm.RESTARTS_UNREADABLE),
        ("sacct", "|300|1|cn2|", "|cn2|1|300|", slurm.LIST_UNREADABLE),
        ("node-events", "2024-06-01T01:06:40|DOWN*", "(null)|DOWN*", node_states.BLANK_END),
        ("node-events", "Cluster|NodeName", "NodeName|Cluster", node_states.OTHER_NODES),
        ("node-events", "2024-06-01T01:06:40|DOWN*", "|DOWN*", node_states.BLANK_END),
        ("pbs-pro", "exec_host=cn1/0*4+cn2/0*4", "exec_host=cn1/0*4+cn9/0*4", pbs._VNODES_WARNING),
        ("pbs-pro", f"start={T + 18_000} ", f"start={T + 18_060} ", pbs._OTHER_START_WARNING),
        ("pbs-pro", f"end={T + 12_000} ", f"end={T + 10_000} ", UNREADABLE),
        ("torque", "exec_host=cn1/0-3+cn2/0-3", "exec_host=cn1/0-3+cn210-3", UNREADABLE),
        ("lsf", f"{T + 7_000} 0 0 {T + 7_300}", f"{T + 7_000} 0 0 {T + 300}", lsf._EARLY_WARNING),
        ("lsf", f'"HOST_CTRL" "10.1" {T + 9_600}', '"HOST_CTRL" "10.1" 0', lsf._ORDER_WARNING),
        ("lsf", f'"HOST_CTRL" "10.1" {T + 600}', '"HOST_CTRL" "10.1" 0', UNREADABLE),
        ("alcf", "2024-06-01 03:20:00,18000.0", ",18000.0", cobalt.NO_END),
        ("alcf", '"x3005c0s2b0n0"', "", cobalt.WHERE_MISSING),
        (
            "table",
            "COMPLETED,2024-06-01T02:46:40Z,2024-06-01T03:20:00Z",
            "COMPLETED,2024-06-01T02:46:40Z,",
            table.ENDS_BY_ELAPSED,
        ),
        ("table", "RUNNING,2024-06-01T04:26:40Z", "RUNNING,2024-06-01T02:26:40Z", table.WRITTEN_AT),
        ("table", ",4500,1,", ",4500?,1,", table.ELAPSED_UNREADABLE),
        ("table", '"cn4,cn5,cn6"', '"cn4,\x1fcn5,cn6"', table.LISTS_UNREADABLE),
        ("table", '"cn3"', "COMPLETED", table.LISTS_UNREADABLE),
        ("flux", f'"t_run": {T + 3_600}.0', f'"t_run": {T + 3_000}.0', flux.OUT_OF_ORDER),
        ("flux", '"ranks": "2", "nodelist": "cn3"', '"ranks": "cn3", "nodelist": "2"', flux.OTHER_RANKS),
        ("flux", '"ranks": "[0,1]"', '"ranks": "[0,1,2]"', flux.OTHER_RANKS),
        ("flux", '"state": "INACTIVE"', '"state": "t_inactive"', flux.UNKNOWN_STATE),
        ("batsim", ",14400.000000,300", ",14401.000000,300", batsim.CONTRADICTING),
        ("batsim", ",14400.000000,300", ",,300", batsim.CONTRADICTING),
        ("batsim", ",10000.000000,2000", ",10060.000000,2000", batsim.CONTRADICTING),
        ("batsim", ",3 4 5", ",3 4", batsim.OTHER_COUNT),
        ("batsim", "9700.000000,3,", "9700.000000,3 4,", batsim.OTHER_COUNT),
        ("batsim", ",7300.000000,", ",7300.0６0000,", UNREADABLE),
    ],
)
def test_what_contradicts_itself_has_warning(name, old, new, sentence, tmp_path):
    warnings = read(name, tmp_path, old, new).record.report.warnings
    assert sentence in warnings
    assert warnings[sentence].examples[0].file.endswith("log")


def test_virtual_nodes_with_names_of_their_own_throughout_are_no_contradiction(tmp_path):
    log = SMALL_LOGS["pbs-pro"]
    content = log.text.replace("(cn", "(vnode").encode()
    assert read_log(log.write(tmp_path, content), "pbs").record.report.warnings == {}


def test_running_jobs_that_agree_on_nothing_raise_no_warning(tmp_path):
    log = SMALL_LOGS["table"]
    content = log.text.replace(",5600,", ",60,").replace(",3600,2,", ",7,2,").encode()
    assert table.WRITTEN_AT not in read_log(log.write(tmp_path, content), "table").record.report.warnings


def test_a_table_without_locations_says_that_nodes_are_placed_by_rule(tmp_path):
    facts = read("alcf", tmp_path, ",LOCATION", ",ROOM").record.report.facts
    assert facts["nodes of jobs"] == cobalt.NO_LOCATION


@pytest.mark.parametrize("value", ["1717200１00", "17\x12000", "17172x", "1717200000,5"])
@pytest.mark.parametrize("name", ["swf", "swf-extended"])
def test_a_start_of_the_log_that_is_no_plain_number_is_refused(name, value, tmp_path):
    with pytest.raises(InputError, match="UnixStartTime is not a whole number"):
        read(name, tmp_path, f"UnixStartTime: {T}", f"UnixStartTime: {value}")


def test_a_start_of_the_log_of_minus_one_is_not_known(tmp_path):
    assert read("swf", tmp_path, f"UnixStartTime: {T}", "UnixStartTime: -1").record.time_origin == "relative"


@pytest.mark.parametrize("name", ["swf", "swf-extended"])
@pytest.mark.parametrize("value", ["4294967294", "-4"])
def test_a_machine_of_billions_of_nodes_is_refused_before_it_is_made(name, value, tmp_path):
    with pytest.raises(InputError, match="the number of nodes cannot be right"):
        read(name, tmp_path, "MaxNodes: 6", f"MaxNodes: {value}")


@pytest.mark.parametrize("text", ["\x1fn5", "n1,\x1cn2", "n1\x0b", "\u2003n1"])
def test_control_characters_are_no_blanks_around_names(text):
    with pytest.raises(ValueError, match="not the name of a node"):
        expand_nodes(text)


def test_an_error_that_only_the_whole_log_shows_names_its_file(tmp_path):
    log = SMALL_LOGS["sacct"]
    read_back = read("sacct", tmp_path, "|1|cn3|", "|1|cn[3|")
    with pytest.raises(InputError, match="the number of nodes of the machine is not known") as caught:
        read_back.build(log.rules)
    assert caught.value.file == "log"
    assert log.rules.window[0] == T * US
