"""Tokens, durations, cost and debates as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from madplug import CallAnswered, DebateFinished, Observer, StudyError, Volatile, redact
from madplug_otel.conventions import CHAT, PROVIDER, SCHEMA
from madplug_otel.exporting import ExportOptions, make_metric_exporter, make_resource

if TYPE_CHECKING:
    from madplug import Run

TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)


class MetricsOptions(ExportOptions):
    """Options of `otel.metrics`."""

    every: Annotated[float, Volatile] = Field(default=10.0, gt=0, description="seconds between two reports")


class Metrics(Observer):
    """Reports tokens, durations and cost of calls, and debates by their outcome, as metrics of OpenTelemetry.

    `gen_ai.client.token.usage` and `gen_ai.client.operation.duration` (histograms, by model), `madplug.cost` (US
    dollars, by model) and `madplug.debates` (by cell and outcome). Only calls that a model answered in this run count,
    so that their sum is what the run paid for.
    """

    name = "metrics"
    Options = MetricsOptions

    def open(self, run: Run) -> None:
        """Make the instruments."""
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        exporter, self._failed = make_metric_exporter(self.options)
        reader = PeriodicExportingMetricReader(exporter, export_interval_millis=1000 * self.options.every)
        self._provider = MeterProvider([reader], make_resource(self.options, run.study), shutdown_on_exit=False)
        meter = self._provider.get_meter("madplug", schema_url=SCHEMA)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=TOKENS)
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "GenAI operation duration.",
            explicit_bucket_boundaries_advisory=SECONDS)
        self._cost = meter.create_counter("madplug.cost", "{USD}", "Cost of the calls, as far as prices are known.")
        self._debates = meter.create_counter("madplug.debates", "{debate}", "Debates that have ended.")

    def call_answered(self, event: CallAnswered) -> None:
        """Count a call that was paid for."""
        answered, usage = event.answered, event.answered.completion.usage
        if answered.source != "paid":
            return
        about: dict[str, Any] = {"gen_ai.operation.name": CHAT, "gen_ai.provider.name": PROVIDER,
                                 "gen_ai.request.model": redact(event.request.model)}
        self._tokens.record(usage.prompt, {**about, "gen_ai.token.type": "input"})
        self._tokens.record(usage.completion, {**about, "gen_ai.token.type": "output"})
        self._seconds.record(answered.seconds, about)
        if usage.cost_usd is not None:
            self._cost.add(usage.cost_usd, about)

    def debate_finished(self, event: DebateFinished) -> None:
        """Count a debate."""
        self._debates.add(1, {"madplug.cell": redact(event.debate.cell), "madplug.outcome": event.outcome})

    def close(self) -> None:
        """Send the last report. Raises `StudyError` if it was not accepted."""
        self._provider.shutdown()
        if self._failed:
            raise StudyError(f"the metrics were not accepted by {redact(self._failed[0])}")
