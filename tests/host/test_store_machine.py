"""Any sequence of writes, kills and reopenings is read back as a model of plain dictionaries has it."""

import asyncio
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from madplug import Agent, Caller, Completion, DebateResult, Decision, Message, Persona, Sample, Usage
from madplug.rows import plain, to_json
from madplug.store import Call, CallRow, DebateId, open_recorder, open_study, sample_digest

IDS = [DebateId(cell, repeat, sample) for cell in "ab" for repeat in (0, 1) for sample in ("q1", "q2")]
TEXTS = ("", "A", "x,", '"content":"","seen":[]', "é\n" * 300, "a line that is said\n" * 60, "\x00\u2028" * 200)
AGENTS = (Agent(0, Persona("one"), "m"), Agent(1, Persona("two", votes=False), None))
ids, texts = st.sampled_from(IDS), st.sampled_from(TEXTS)


def sample_of(id):
    return Sample(id.sample, f"Which is {id.sample}?", ("one", "two"))


class Store(RuleBasedStateMachine):
    """A recorder beside a model of what it should have."""

    @initialize()
    def begin(self):
        self.loop = asyncio.new_event_loop()
        self.folder = Path(tempfile.mkdtemp())
        self.kills = 0
        self.open("first")
        self.debates, self.running, self.calls, self.facts = {}, set(), {}, {}

    def open(self, name):
        self.recorder = open_recorder(self.folder / name)

    def run(self, writing):
        self.loop.run_until_complete(writing)

    def flush(self):
        self.run(self.recorder.keep_fact("flushed", True))

    @rule(id=ids)
    def start(self, id):
        self.recorder.start_debate(id, sample_of(id), ("A",))
        self.debates[id] = DebateResult(id.cell, id.repeat, sample_of(id), ("A",))
        self.running.add(id)

    @precondition(lambda self: self.running)
    @rule(data=st.data(), text=texts, number=st.integers(0, 4), retracted=st.booleans(), reply=st.booleans())
    def message(self, data, text, number, retracted, reply):
        """A message that may repeat a reply, and may replace an earlier one: an answer taken back, for example."""
        id = data.draw(st.sampled_from(sorted(self.running)))
        key = data.draw(st.sampled_from(sorted(self.calls))) if self.calls and reply else None
        content = text if key is None else self.calls[key][1].completion.text
        message = Message(number, 1, 0, 0, "draft", content, retracted=retracted, seen=tuple(range(40)),
                          calls=() if key is None else (key.hex(),), data={"x": {"y": [number]}})
        self.recorder.keep_message(id, message)
        found = self.debates[id]
        kept = {m.id: m for m in found.messages} | {number: message}
        self.debates[id] = replace(found, messages=tuple(kept[i] for i in sorted(kept)))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def agents(self, data):
        id = data.draw(st.sampled_from(sorted(self.running)))
        self.recorder.keep_agents(id, AGENTS)
        self.debates[id] = replace(self.debates[id], agents=AGENTS)

    @rule(id=ids, texts=st.lists(texts, min_size=1, max_size=5), reply=texts, key=st.binary(min_size=4, max_size=4))
    def call(self, id, texts, reply, key):
        request = to_json({"messages": [{"role": "user", "content": text} for text in texts], "params": {}})
        row = CallRow(key, Caller(*id, agent=1, purpose="discuss", round=2, nth=3), "m", request)
        call = Call(Completion(reply, Usage(2, 3, 1, 0.5, {"id": 7}), (-0.5,)), 1, 0.25)
        self.run(self.recorder.keep_call(row, call))
        self.calls.setdefault(key, (row, call))

    @rule(id=ids, error=st.sampled_from([None, "refused"]), dropped=st.booleans())
    def finish(self, id, error, dropped):
        """The result takes precedence over what was recorded while the debate ran."""
        before = self.debates.get(id) if id in self.running else None
        found = before or DebateResult(id.cell, id.repeat, sample_of(id), ("A",))
        result = replace(found, messages=found.messages[:-1] if dropped else found.messages, error=error, calls=2,
                         decision=None if error else Decision("A", "a", scores={"A": 1.0}), tokens=Usage(3, 4, 1, 0.5),
                         metrics={"x": 1.0}, notes={"n": [1]}, seconds=1.5)
        self.run(self.recorder.finish_debate(result))
        self.debates[id] = result
        self.running.discard(id)

    @rule(name=st.sampled_from("fg"), value=st.sampled_from([None, 1, {"a": [1, "é"]}]))
    def fact(self, name, value):
        self.run(self.recorder.keep_fact(name, value))
        self.facts[name] = value

    @rule()
    def reopen(self):
        self.recorder.close()
        self.open(self.recorder.folder.name)
        self.stop()

    @rule()
    def kill(self):
        """A kill leaves the files as they are, with the write-ahead file."""
        self.flush()
        self.kills += 1
        name = f"killed {self.kills}"
        shutil.copytree(self.recorder.folder, self.folder / name)
        self.recorder.close()
        self.open(name)
        self.stop()

    def stop(self):
        """Debates that were running can be read, and must be started again before they go on."""
        self.running.clear()

    @invariant()
    def read_back(self):
        self.flush()
        with open_study(self.recorder.folder) as study:
            for store in (study, self.recorder):
                assert list(store.debates()) == [self.debates[id] for id in sorted(self.debates)]
                assert {row["key"]: self.summary(row) for row in store.calls()} == {
                    key.hex(): (json.loads(row.request), *self.texts(call)) for key, (row, call) in self.calls.items()}
                assert store.totals().calls == len(self.calls)
            assert {name: study.fact(name) for name in self.facts} == self.facts
            ended = [r for id, r in sorted(self.debates.items()) if r.error or r.decision]
            assert [json.loads(line) for line in study.records()] == plain(ended)
            for key, (row, call) in self.calls.items():
                assert study.call(key) == call
                assert next(iter(study.calls(keys=[key])))["request"] == json.loads(row.request)
        done = {id for id, r in self.debates.items() if r.decision}
        assert self.recorder.done() == {id: sample_digest(sample_of(id), ("A",)) for id in done}
        assert self.recorder.failed() == {id for id, r in self.debates.items() if r.error}

    def summary(self, row):
        return row["request"], row["text"], row["usage"], row["logprobs"], row["retries"], row["seconds"]

    def texts(self, call):
        done = call.completion
        return done.text, plain(done.usage), list(done.logprobs), call.retries, call.seconds

    def teardown(self):
        if hasattr(self, "recorder"):
            self.recorder.close()
            self.loop.close()
            shutil.rmtree(self.folder)


TestStore = Store.TestCase
TestStore.settings = settings(max_examples=40, stateful_step_count=25, deadline=None, derandomize=True,
                              suppress_health_check=[HealthCheck.too_slow])
