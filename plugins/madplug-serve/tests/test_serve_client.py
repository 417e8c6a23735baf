"""A debate behind the endpoint is, for OpenAI's own client, a model like any other."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from madplug import open_study
from madplug_read import study_facts
from madplug_testing.endpoint import completion


def say(letter):
    return lambda body: completion(f"I see. Final answer: ({letter})", 10)


def sample_of(reply):
    return reply.madplug["debates"][0]["sample"]


def test_every_cell_is_a_model(client, shared):
    assert study_facts(shared.folder).state == "serving"
    models = client().models
    assert [m.id for m in models.list()] == ["main", "short"]
    assert models.retrieve("short").owned_by == "madplug"


def test_a_request_is_answered_with_the_decision_of_a_debate(client, agents, question):
    agents.endpoint.replies = say("B")
    reply = client().chat.completions.create(model="main", messages=question, temperature=0, max_tokens=5)
    [choice] = reply.choices
    assert (choice.message.content, choice.finish_reason) == ("B", "stop")
    assert choice.message.reasoning_content.count("Final answer: (B)") == 6
    assert "round 2]" in choice.message.reasoning_content
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (60, 30), "of all six calls"
    assert reply.madplug["ignored"] == ["temperature", "max_tokens"]
    assert reply.madplug["debates"][0]["agreed"]
    client().chat.completions.create(model="short", messages=question)
    assert agents.stats()["requests"] == 6, "the only round of the other cell is the first of this one"


DATASET = """
[dataset]
use = "files.table"
path = "rows.jsonl"
instruction = "Weigh both sides."
"""


def test_asked_again_it_is_debated_again_and_with_a_seed_answered_from_the_record_also_after_a_restart(
        serve, client, agents, question, tmp_path):
    pytest.importorskip("madplug_files")
    (tmp_path / "rows.jsonl").write_text('{"question": "A or B?", "choices": ["x", "y"], "reference": "x"}\n')
    samples, seeded = [], []
    for _ in range(2):
        with serve(more=DATASET) as served:
            create = client(served).chat.completions.create
            seeded += [create(model="main", messages=question, seed=5) for _ in range(2)]
            samples += [sample_of(create(model="main", messages=question)) for _ in range(2)]
            assert served.stop() == 0
        assert (served.folder / "summary.json").is_file()
    assert all((reply.choices, reply.usage) == (seeded[0].choices, seeded[0].usage) for reply in seeded)
    assert len(set(samples)) == 4
    assert agents.stats()["requests"] == 5 * 6
    assert all("Weigh both sides." in str(body) for _, body in agents.seen), "the run file's instruction"
    with open_study(served.folder) as study:
        debates = list(study.debates())
    assert len(debates) == 5
    assert {d.sample.question for d in debates} == {question[0]["content"]}
    assert all(len(d.messages) == 6 for d in debates)


def test_n_debates_are_choices_of_one_reply_or_stream(client, agents, question):
    reply = client().chat.completions.create(model="main", messages=question, n=3)
    assert [c.index for c in reply.choices] == [0, 1, 2]
    assert len({d["sample"] for d in reply.madplug["debates"]}) == 3
    assert agents.stats()["requests"] == 18
    chunks = list(client().chat.completions.create(model="main", messages=question, stream=True, n=2))
    assert sorted(c.choices[0].index for c in chunks if c.choices and c.choices[0].finish_reason) == [0, 1]


def test_a_stream_is_the_debate_as_reasoning_and_the_answer_as_content(client, agents, question):
    agents.endpoint.replies = say("A")
    chunks = list(client().chat.completions.create(
        model="main", messages=question, stream=True, stream_options={"include_usage": True}))
    deltas = [c.choices[0].delta for c in chunks if c.choices]
    reasons = [d.reasoning_content for d in deltas if getattr(d, "reasoning_content", None)]
    assert len(reasons) == 6, "message by message"
    assert "".join(d.content or "" for d in deltas) == "A"
    assert chunks[-1].usage.total_tokens == 90
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"


def test_reasoning_arrives_while_the_debate_runs(client, agents, question):
    read = threading.Event()

    def reply(body):
        assert len(body["messages"]) == 1 or read.wait(60), "round 2 is answered once round 1 has been read"
        return completion("Final answer: (A)")

    agents.endpoint.replies = reply
    for chunk in client().chat.completions.create(model="main", messages=question, stream=True):
        if chunk.choices and getattr(chunk.choices[0].delta, "reasoning_content", None):
            read.set()
    assert read.is_set()


def test_clients_that_ask_for_the_same_debate_at_the_same_time_all_get_its_stream(client, agents, question):
    asked = []

    def reply(body):
        asked.append(body)
        assert all(started.wait(60) for started in streams)
        return completion("Final answer: (A)")

    def read(started):
        chunks = []
        for chunk in client().chat.completions.create(model="main", messages=question, stream=True, seed=1):
            started.set()
            chunks.append(chunk)
        texts = [c.choices[0].delta.content or "" for c in chunks]
        return "".join(texts), sum(bool(getattr(c.choices[0].delta, "reasoning_content", None)) for c in chunks)

    streams = [threading.Event() for _ in range(3)]
    agents.endpoint.replies = reply
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(read, streams)) == [("A", 6)] * 3
    assert len(asked) == 6


def test_a_conversation_with_images_reaches_the_agents(client, agents):
    image = "data:image/png;base64,iVBORw0KGgo="
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Hello!"},
                {"role": "user", "content": [{"type": "text", "text": "What is this, A) or B) ?"},
                                             {"type": "image_url", "image_url": {"url": image}}]}]
    client().chat.completions.create(model="main", messages=messages)
    asked = str(agents.seen[0][1])
    for part in ("Be brief.", "User: Hello", "Assistant: Hello!", "User: What is this, A) or B) ?", image):
        assert part in asked


def test_an_undecided_debate_has_an_empty_answer_and_a_reason(client, agents, question):
    agents.endpoint.replies = lambda body: completion("I cannot tell.")
    reply = client().chat.completions.create(model="main", messages=question)
    assert reply.choices[0].message.content == ""
    assert reply.madplug["debates"][0]["reason"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_debate_that_fails_is_an_error_with_its_reason_and_goes_on_when_asked_again(client, agents, question, stream):
    agents.configure(faults=[None, None, None, None, "context"])
    create = client().chat.completions.create
    with pytest.raises(pytest.importorskip("openai").APIError, match="the debate failed") as caught:
        list(create(model="main", messages=question, stream=stream))
    if not stream:
        assert caught.value.status_code == 502
    before = agents.stats()["ok"]
    assert create(model="main", messages=question).choices[0].message.content
    assert agents.stats()["ok"] == 6, f"{before} calls were answered before and are not repeated"


def test_a_template_writes_the_answer_as_a_harness_expects_it():
    from madplug_serve.replies import answer_text
    from madplug_testing import play

    result = play(replies=["A", "{answer}", "{answer}"]).result
    assert answer_text(result, "ANSWER: {answer}") == "ANSWER: {answer}"
    assert answer_text(result, "{message} {} {x}") == "{answer} {} {x}"
