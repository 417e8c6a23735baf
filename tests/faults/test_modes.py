"""A small study against every way an endpoint can answer badly: the same results, or debates that fail by name."""

import pytest

from madplug_testing.endpoint import running_endpoint
from madplug_testing.faults import FAULTS
from tests.faults import studies


def names(text):
    return text.split()


HARMLESS = names("""
utf8 escapes byte_order_mark utf16 utf32 blanks duplicate_keys nan_usage endless_usage deep_usage no_usage null_usage
list_usage text_usage negative_usage huge_usage large_usage text_count null_count list_count half_characters
cached_text cached_huge finish_list finish_null model_object id_null reasoning_number logprobs_text logprobs_huge
logprobs_null more_choices unknown_fields parts gzip gzip_members deflate raw_deflate gzip_chunks chunks until_closed
no_type wrong_type continue closed_after reset_after another_reply drip cookies big
""")
CHANGED = {"utf8", "escapes", "big"}
"""Harmless, but the text of the reply is another one."""
BILLED = names("deeper_usage empty null_content number_content object_content list_content true_content null_message "
               "text_message null_choice no_choice null_choices object_choices text_choices")
"""Nothing can be read in the reply, but its usage: it is paid, and so it is among the calls."""
RACING = {"closed_after", "reset_after"}
"""A request may meet a connection that is just being closed or reset; it is sent again on another one."""
PASSING = names("""
408 409 425 429 500 502 503 504 529 599 malformed no_choices error_in_200 blank html json_array json_text json_null
json_nan deep tags two_values deeper_usage empty null_content number_content object_content list_content true_content
null_message text_message null_choice no_choice null_choices object_choices text_choices error_tags error_big
error_list reset closed hang reset_in_head closed_in_head reset_in_body closed_in_body hang_in_body cut_chunks
bad_chunk negative_chunk cut_gzip bad_gzip not_gzip brotli bad_status bad_version http_0_9 noise http_2
negative_length two_lengths text_length short_length length_and_chunks long_header endless_headers endless_continue
slow_head slow_body switching no_content
""")
REFUSED = {
    "400": "HTTP 400", "413": "HTTP 413", "422": "HTTP 422", "context": "context length", "filter": "was flagged",
    "filter_in_200": "was flagged", "flagged": "was flagged", "huge": "max_reply_mb",
    "many_values": "values", "gzip_bomb": "max_reply_mb", "endless_chunks": "max_reply_mb",
    "endless_body": "max_reply_mb"}
SILENT = {"filtered"}
"""Empty for good: after a few paid attempts the agent is silent (`tests/host/test_paid.py`)."""
NO_ACCESS = {"401": "HTTP 401", "402": "HTTP 402", "403": "HTTP 403", "404": "HTTP 404", "quota": "quota",
             "307": "leads elsewhere"}
SLOW = {"hang", "hang_in_body", "endless_continue", "slow_head", "slow_body"}
KEY = "sk-proj-abc123DEF456ghi789"


@pytest.fixture(scope="module")
def without_faults(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole") / "study"
    with running_endpoint(text="{letter}") as endpoint:
        assert studies.run(folder, endpoint.url) == 0
    return folder


@pytest.fixture(autouse=True)
def _a_key(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def check_files(folder, whole):
    """The files of a run are those of any run; none has the key or a traceback in it."""
    assert {path.name for path in folder.iterdir()} == {path.name for path in whole.iterdir()}
    for path in folder.iterdir():
        written = path.read_bytes()
        assert KEY.encode() not in written, path
        assert b"Traceback" not in written, path


def test_every_fault_has_its_place_here():
    named = [*HARMLESS, *PASSING, *REFUSED, *SILENT, *NO_ACCESS]
    assert len(named) == len(set(named))
    assert set(FAULTS) == {name for name in named if not name.isdigit()}


@pytest.mark.parametrize("fault", [*HARMLESS, *PASSING])
def test_a_fault_that_passes_leaves_no_trace_in_the_results(fault, tmp_path, without_faults):
    folder = tmp_path / "study"
    with running_endpoint(text="{letter}", faults=[fault], by="body", share=0.3) as endpoint:
        status = studies.run(folder, endpoint.url, timeout=1.0 if fault in SLOW else 30.0)
        stats = endpoint.stats()
    assert status == 0
    struck = stats["faults"][fault]
    assert struck > 0
    if fault in CHANGED:
        return
    assert studies.debates(folder) == studies.debates(without_faults)
    assert studies.summary(folder) == studies.summary(without_faults)
    calls = studies.calls(folder)
    retries = sum(call["retries"] for call in calls)
    assert retries <= struck if fault in RACING else retries == (0 if fault in HARMLESS else struck)
    failed = 0 if fault in BILLED else retries
    assert len(calls) <= stats["requests"] <= len(calls) + failed
    if fault not in RACING:
        assert stats["requests"] == len(calls) + failed
    check_files(folder, without_faults)


@pytest.mark.parametrize("fault", [*REFUSED, *NO_ACCESS])
def test_a_refusal_fails_its_debates_by_name_and_a_later_run_mends_them(fault, tmp_path, without_faults):
    folder, whole = tmp_path / "study", studies.debates(without_faults)
    with running_endpoint(text="{letter}", faults=[fault] * 9, by="body", share=0.12) as endpoint:
        status = studies.run(folder, endpoint.url)
        found = studies.debates(folder)
        failed = {id for id, debate in found.items() if debate["error"]}
        assert status == 1
        assert 0 < len(failed) < 5
        assert all({**REFUSED, **NO_ACCESS}[fault] in found[id]["error"] for id in failed)
        assert {id: found[id] for id in found.keys() - failed} == {id: whole[id] for id in whole.keys() - failed}
        check_files(folder, without_faults)
        answered = len(studies.calls(folder))
        endpoint.configure(faults=[])
        assert studies.run(folder, endpoint.url) == 0
        assert endpoint.stats()["requests"] == len(studies.calls(folder)) - answered
    assert studies.debates(folder) == whole
    assert studies.summary(folder) == studies.summary(without_faults)
