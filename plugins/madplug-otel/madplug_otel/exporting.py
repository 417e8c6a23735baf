"""Sending to a receiver (OTLP over HTTP), and counting what does not arrive.

OpenTelemetry's SDK drops what it cannot send and writes that to a log. A study reports it as a problem instead.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from madplug import Options, StudyError, Volatile, redact

if TYPE_CHECKING:
    import requests
    from opentelemetry.sdk.metrics.export import MetricExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

QUEUE = 65_536
"""The most spans that wait to be sent."""
_MOST = 65_536
"""Bytes of a receiver's answer that are read: it says in a few words what was rejected."""


class ExportOptions(Options):
    """Where observers of OpenTelemetry send."""

    endpoint: Annotated[str | None, Volatile] = Field(default=None, pattern=r"^https?://", description=(
        "the receiver's base URL, such as http://127.0.0.1:4318; unset: what the variables OTEL_EXPORTER_OTLP_* say. "
        "Headers with keys come from OTEL_EXPORTER_OTLP_HEADERS only"))
    service_name: Annotated[str, Volatile] = Field(default="madplug", description="the resource's `service.name`")
    timeout: Annotated[float, Volatile] = Field(
        default=5.0, gt=0, le=600, description="seconds that sending one batch may take, retries included")

    def address(self, signal: str) -> str | None:
        """The URL for `traces` or `metrics`, or None for what the environment says."""
        return None if self.endpoint is None else f"{self.endpoint.rstrip('/')}/v1/{signal}"


def silence_log() -> None:
    """Keep the SDK's log off the terminal, unless the program has set up logging: failures become problems."""
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())


def make_resource(options: ExportOptions, study: str) -> Resource:
    """What the spans and metrics of a run are about."""
    from opentelemetry.sdk.resources import Resource

    return Resource.create({"service.name": options.service_name, "madplug.study": redact(study)})


def make_session(rejected: Callable[[bytes], int], lose: Callable[[int], None]) -> requests.Session:
    """A session that follows no redirect, on which the key in a header would go elsewhere, and reads no long answer.

    rejected: how many items an answer says were rejected. lose: is told how many.
    """
    import requests

    class Session(requests.Session):
        """Raises `requests.RequestException` for a redirect."""

        def request(self, *arguments: Any, **more: Any) -> requests.Response:
            response = super().request(*arguments, **{**more, "allow_redirects": False, "stream": True})
            length = response.headers.get("Content-Length", "")
            if length.isdecimal() and int(length) <= _MOST:
                content = response.content
            else:
                response._content = content = b""
                response.close()
            if 300 <= response.status_code < 400:
                raise requests.RequestException("a redirect, which is not followed")
            if response.ok:
                with suppress(Exception):  # it is not an answer of OTLP
                    lose(rejected(content))
            return response

    return Session()


class SpanSender:
    """A tracer provider of its own, and how many of its spans were sent."""

    def __init__(self, options: ExportOptions, study: str) -> None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

        silence_log()
        sender = self

        class Exporter(OTLPSpanExporter):
            """Counts what is sent."""

            def export(self, spans: Sequence[Any]) -> SpanExportResult:
                result = super().export(spans)
                sender.sent += len(spans) if result is SpanExportResult.SUCCESS else 0
                return result

        def lose(spans: int) -> None:
            sender.sent -= spans

        self.sent = 0
        self.provider: TracerProvider = TracerProvider(resource=make_resource(options, study), shutdown_on_exit=False)
        exporter = Exporter(options.address("traces"), timeout=options.timeout, session=make_session(
            lambda answer: ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans, lose))
        self.endpoint = exporter._endpoint
        self.provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=QUEUE))

    def close(self, ended: int) -> None:
        """Send what is left. ended: how many spans there were. Raises `StudyError` if some were not sent."""
        self.provider.shutdown()
        if self.sent < ended:
            raise StudyError(f"{ended - self.sent} of {ended} spans were not accepted by {redact(self.endpoint)}")


def make_metric_exporter(options: ExportOptions) -> tuple[MetricExporter, list[str]]:
    """An exporter, and a list that names the failures of its latest attempts: empty once everything was sent."""
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceResponse
    from opentelemetry.sdk.metrics.export import MetricExportResult

    silence_log()
    failed: list[str] = []
    rejected = 0

    def lose(points: int) -> None:
        nonlocal rejected
        rejected += points

    class Exporter(OTLPMetricExporter):
        """Remembers whether the latest metrics were sent; they are sums, so that later ones include earlier ones."""

        def export(self, *arguments: Any, **more: Any) -> MetricExportResult:
            nonlocal rejected
            failed[:], rejected = [self._endpoint], 0  # also if it never returns
            result = super().export(*arguments, **more)
            if result is MetricExportResult.SUCCESS and not rejected:
                failed.clear()
            return result

    session = make_session(
        lambda answer: ExportMetricsServiceResponse.FromString(answer).partial_success.rejected_data_points, lose)
    return Exporter(options.address("metrics"), timeout=options.timeout, session=session), failed
