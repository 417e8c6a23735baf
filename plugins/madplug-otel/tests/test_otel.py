"""What arrives at a receiver of OpenTelemetry, over HTTP on the loopback interface."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from madplug import Completion, Metric, ModelError, Persona, PersonaGenerator, Sample, Usage
from madplug_otel import Metrics, Traces
from madplug_otel.conventions import SCHEMA
from madplug_testing import play


class Receiver(ThreadingHTTPServer):
    """Keeps what is sent."""

    def __init__(self, status=200, answers=None, headers=()):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.bodies = status, {"traces": [], "metrics": []}
        self.answers, self.headers, self.written = answers or {}, headers, []
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    @property
    def raw(self):
        return b"".join(self.bodies["traces"] + self.bodies["metrics"])

    def spans(self):
        """All spans, by name in order of arrival."""
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        scopes = [scope for body in self.bodies["traces"]
                  for resource in ExportTraceServiceRequest.FromString(body).resource_spans
                  for scope in resource.scope_spans]
        assert {scope.schema_url for scope in scopes} <= {SCHEMA}
        return [span for scope in scopes for span in scope.spans]

    def metrics(self):
        """The data points of the last report, by metric."""
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

        last = ExportMetricsServiceRequest.FromString(self.bodies["metrics"][-1])
        return {metric.name: list((metric.histogram if metric.HasField("histogram") else metric.sum).data_points)
                for resource in last.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics}


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        signal = self.path.rpartition("/")[2]
        self.server.bodies[signal].append(body)
        answer = self.server.answers.get(signal, b"")
        self.send_response(self.server.status)
        for name, value in self.server.headers or [("Content-Length", str(len(answer)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer)
        self.server.written.append(signal)

    def log_message(self, *_):
        pass


@contextmanager
def receiving(status=200, answers=None, headers=()):
    receiver = Receiver(status, answers, headers)
    threading.Thread(target=receiver.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield receiver
    finally:
        receiver.shutdown()
        receiver.server_close()


@pytest.fixture
def receiver():
    with receiving() as receiver:
        yield receiver


def attributes(item):
    def plain(value):
        kind = value.WhichOneof("value")
        found = getattr(value, kind)
        return [plain(v) for v in found.values] if kind == "array_value" else found

    return {a.key: plain(a.value) for a in item.attributes}


@pytest.fixture
def secret(monkeypatch):
    """A key in the environment."""
    monkeypatch.setenv("SOME_API_KEY", "sk-a-very-secret-key")
    return "sk-a-very-secret-key"


def priced(request):
    return Completion("A", Usage(100, 20, 40, cost_usd=0.5))


def test_a_study_is_a_tree_of_study_debates_turns_and_calls_described_by_the_conventions(receiver):
    played = play(replies=priced, agents=2, rounds=2, observers=[Traces(endpoint=receiver.url)])
    assert played.problems == []
    spans = receiver.spans()
    by_id = {span.span_id: span for span in spans}

    def line(span):
        parent = by_id.get(span.parent_span_id)
        return [*(line(parent) if parent else []), attributes(span).get("gen_ai.operation.name", "debate")]

    tree = ["invoke_workflow", "debate", "invoke_agent", "chat"]
    assert sorted(map(line, spans)) == sorted([tree[:1], tree[:2], *[tree[:3], tree] * 4])
    assert len({span.trace_id for span in spans}) == 1
    for span in spans:
        parent = by_id.get(span.parent_span_id, span)
        assert parent.start_time_unix_nano <= span.end_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano
    described = {}
    for span in spans:
        described.setdefault(attributes(span).get("gen_ai.operation.name", "debate"), []).append(attributes(span))
    assert described["chat"][0].items() >= {
        "gen_ai.request.model": "model", "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 20,
        "gen_ai.usage.cache_read.input_tokens": 40, "madplug.call.source": "paid"}.items()
    turns = sorted((turn["gen_ai.agent.name"], turn["gen_ai.agent.id"], turn["madplug.round"])
                   for turn in described["invoke_agent"])
    assert turns == [(f"Agent {i + 1}", str(i), round) for i in (0, 1) for round in (1, 2)]
    assert described["debate"][0].items() >= {
        "madplug.cell": "play", "madplug.sample": "q1", "madplug.outcome": "done", "madplug.calls": 4}.items()


def test_every_name_is_one_of_the_installed_conventions(receiver):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are incubating
        from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
        from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
        from opentelemetry.semconv.schemas import Schemas
    play(replies=priced, agents=1, observers=[Traces(endpoint=receiver.url, content=True),
                                              Metrics(endpoint=receiver.url)])
    known = {v for k, v in vars(gen_ai_attributes).items() if k.startswith("GEN_AI_") and isinstance(v, str)}
    used = {name for span in receiver.spans() for item in (span, *span.events) for name in attributes(item)}
    assert {name for name in used if not name.startswith("madplug.")} <= known
    metrics = {v for v in vars(gen_ai_metrics).values() if isinstance(v, str)}
    assert {name for name in receiver.metrics() if not name.startswith("madplug.")} <= metrics
    assert SCHEMA in {schema.value for schema in Schemas}


def test_calls_that_belong_to_no_turn_are_the_debates_and_no_key_in_a_name_is_sent(receiver, secret):
    class Caster(PersonaGenerator):
        """Asks a model who takes part."""

        name = "caster"

        async def generate(self, debate, roster):
            return Persona(f"{(await debate.ask('who?', purpose='persona')).text} {secret}")

    play(replies=priced, sample=Sample(f"id {secret}", "?"), personas=[Caster()], agents=1, observers=[
        Traces(endpoint=receiver.url), Metrics(endpoint=receiver.url)])
    spans = receiver.spans()
    names = {span.span_id: span.name for span in spans}
    calls = {attributes(s)["madplug.call.purpose"]: names[s.parent_span_id] for s in spans if s.name == "chat model"}
    assert calls["persona"] == "debate play"
    assert b"A [secret]" in receiver.raw
    assert secret.encode() not in receiver.raw


def test_scores_are_evaluation_results_and_a_failure_is_an_error(receiver):
    class Length(Metric):
        """Counts."""

        name = "length"

        def score(self, debate, references):
            return 3.0

    def fail(request):
        raise ModelError("no such thing")

    play(replies=priced, metrics={"test.length": Length()}, observers=[Traces(endpoint=receiver.url)])
    play(replies=fail, observers=[Traces(endpoint=receiver.url)], expect_failure=True)
    done, failed = (s for s in receiver.spans() if s.name == "debate play")
    [score] = [attributes(e) for e in done.events if e.name == "gen_ai.evaluation.result"]
    assert score == {"gen_ai.evaluation.name": "test.length", "gen_ai.evaluation.score.value": 3.0}
    assert failed.status.code == 2
    assert "no such thing" in failed.status.message


def test_tokens_durations_cost_and_debates_are_metrics(receiver):
    played = play(replies=priced, agents=2, rounds=2, observers=[Metrics(endpoint=receiver.url)])
    assert played.problems == []
    found = receiver.metrics()
    tokens = {attributes(p)["gen_ai.token.type"]: p for p in found["gen_ai.client.token.usage"]}
    assert (tokens["input"].sum, tokens["output"].sum, tokens["input"].count) == (400, 80, 4)
    assert found["gen_ai.client.operation.duration"][0].count == 4
    assert found["madplug.cost"][0].as_double == 2.0
    [debates] = found["madplug.debates"]
    assert debates.as_int == 1
    assert attributes(debates) == {"madplug.cell": "play", "madplug.outcome": "done"}


def test_neither_content_nor_keys_are_sent(receiver, monkeypatch, secret):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hidden-header-value")

    def leak(request):
        return Completion(f"my key is {secret}, and the answer is Xylophone")

    for content in (False, True):
        receiver.bodies["traces"].clear()
        play(replies=leak, sample="Zebra?", agents=1, observers=[
            Traces(endpoint=receiver.url, content=content), Metrics(endpoint=receiver.url)])
        assert secret.encode() not in receiver.raw
        assert b"hidden-header-value" not in receiver.raw
        assert (b"Xylophone" in receiver.raw) is content
        assert (b"Zebra" in receiver.raw) is content


def problems_with(receiver):
    played = play(replies=priced, agents=1, observers=[Traces(endpoint=receiver.url, timeout=1),
                                                       Metrics(endpoint=receiver.url, timeout=1)])
    assert played.result.error is None
    return [p.partition("close: ")[2].rpartition(" by ")[0] for p in played.problems]


@pytest.mark.parametrize("status", [301, 302, 307, 308, 400])
def test_what_is_refused_is_a_problem_and_a_redirect_is_not_followed_with_the_key(status, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=sk-a-very-secret-key")
    with receiving() as other:
        headers = [("Location", f"{other.url}/v1/traces"), ("Content-Length", "0")] if status < 400 else ()
        with receiving(status, headers=headers) as refusing:
            assert problems_with(refusing) == ["4 of 4 spans were not accepted", "the metrics were not accepted"]
        assert not other.raw


def test_a_receiver_that_is_not_there_is_a_problem_too():
    with receiving() as gone:
        pass
    assert problems_with(gone) == ["4 of 4 spans were not accepted", "the metrics were not accepted"]


def test_what_a_receiver_says_it_rejected_was_not_accepted():
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    answers = {"traces": ExportTraceServiceResponse(partial_success={"rejected_spans": 3}),
               "metrics": ExportMetricsServiceResponse(partial_success={"rejected_data_points": 1})}
    with receiving(answers={name: answer.SerializeToString() for name, answer in answers.items()}) as rejecting:
        assert problems_with(rejecting) == ["3 of 4 spans were not accepted", "the metrics were not accepted"]
    with receiving(answers={"traces": b"\xff", "metrics": b"{}"}) as talking:
        assert problems_with(talking) == []


def test_an_answer_of_unknown_length_is_not_read():
    answers = dict.fromkeys(("traces", "metrics"), b"a" * 10**8)
    with receiving(answers=answers, headers=[("Connection", "close")]) as endless:
        assert problems_with(endless) == []
    assert endless.written == []
