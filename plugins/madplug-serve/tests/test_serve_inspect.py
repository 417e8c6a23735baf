"""inspect_ai evaluates a debate as it does any model."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from madplug_testing.endpoint import completion

pytest.importorskip("inspect_ai", reason="inspect-ai is not installed: tox run -e integrations")
TASK = """
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample, example_dataset
from inspect_ai.scorer import choice, includes
from inspect_ai.solver import generate, multiple_choice


@task
def theory_of_mind():
    stories = [Sample(f"{s.input} (A) yes (B) no", target=s.target) for s in example_dataset("theory_of_mind")[:3]]
    return Task(MemoryDataset(stories), solver=generate(), scorer=includes())


@task
def capitals():
    questions = [Sample(f"Capital of country {i}?", choices=["Oslo", "Rome"], target="B") for i in range(2)]
    return Task(MemoryDataset(questions), solver=multiple_choice(), scorer=choice())
"""
READ = """
import sys
from inspect_ai.log import list_eval_logs, read_eval_log
for info in list_eval_logs(sys.argv[1]):
    log = read_eval_log(info)
    print(log.eval.task, log.status, log.results.scores[0].metrics["accuracy"].value,
          sum(u.total_tokens for u in log.stats.model_usage.values()), len(log.samples),
          "round 2]" in str(log.samples[0].output.message.content))
"""


def test_its_own_tasks_run_against_a_debate(tmp_path, serve, agents):
    agents.endpoint.replies = lambda body: completion("It is Rome. Final answer: (B)", 10)
    (tmp_path / "task.py").write_text(TASK)
    with serve("--template", "ANSWER: {answer}") as served:
        environ = {**os.environ, "MADPLUG_BASE_URL": served.url, "MADPLUG_API_KEY": "serve-key-0123456789",
                   "INSPECT_LOG_FORMAT": "eval"}
        done = subprocess.run(
            [str(Path(sys.executable).with_name("inspect")), "eval", "task.py", "--model", "openai-api/madplug/main",
             "--log-dir", "logs", "--display", "plain"], cwd=tmp_path, env=environ, capture_output=True, text=True,
            timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    read = subprocess.run([sys.executable, "-c", READ, "logs"], cwd=tmp_path, capture_output=True, text=True,
                          timeout=120, check=True)
    rows = sorted(line.split() for line in read.stdout.splitlines())
    assert [row[:3] for row in rows] == [["capitals", "success", "1.0"], ["theory_of_mind", "success", "0.0"]]
    assert [row[4:] for row in rows] == [["2", "True"], ["3", "True"]], "the debate is the reasoning of the reply"
    assert [int(row[3]) for row in rows] == [2 * 6 * 16, 3 * 6 * 16], "the usage is that of the whole debates"
    assert agents.stats()["requests"] == 5 * 6
