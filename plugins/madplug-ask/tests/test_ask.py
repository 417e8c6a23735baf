"""`madplug ask`, with a model of a few words: what is printed, what is kept, and what is refused."""

import json
from io import StringIO

import pytest
from click.testing import CliRunner
from rich.console import Console

from madplug import Agent, AgentsCast, DebateId, Message, MessageRecorded, Persona, Request, open_study
from madplug.cli.program import main
from madplug.study import Registry
from madplug_ask.show import Transcript
from madplug_ask.study import model_table

PARROT = '''
from madplug import Completion, Model, ModelOptions, Paradigm, UnreachableError, Usage, hookimpl
from madplug_prompting.streaming import begin_reply
from pydantic import Field

class Parrot(Model):
    """Says what it is told to say."""
    name = "chat"
    class Options(ModelOptions):
        """Options."""
        model: str = Field(default="Final answer: B", description="what it says")
    def missing(self):
        return "its key is not set" if self.options.model == "no key" else None
    async def complete(self, request):
        if self.options.model == "gone":
            raise UnreachableError("no connection")
        shown = begin_reply(request)
        for word in self.options.model.split(" ") if shown else ():
            shown(word + " ")
        return Completion(self.options.model, Usage(10, 2))

@hookimpl
def madplug_register_models():
    return [Parrot]
'''
PLANETS = ("Which is the largest?", "--choice", "Mars", "--choice", "Jupiter")


@pytest.fixture
def ask(tmp_path, monkeypatch, madplug_plugin):
    madplug_plugin("parrot", PARROT)
    monkeypatch.chdir(tmp_path)

    def ask(*words, model="parrot:[AGREE] Final answer: B"):
        done = CliRunner().invoke(main, ["ask", *words, *(["--model", model] if model else [])])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done

    return ask


def test_what_is_asked_twice_within_a_second_is_asked_twice(ask, tmp_path):
    for _ in range(3):
        assert ask(*PLANETS, "--quiet").exit_code == 0
    assert len([*(tmp_path / "runs/ask").iterdir()]) == 3


def test_the_answer_goes_to_standard_output_and_the_debate_to_standard_error(ask):
    done = ask(*PLANETS)
    assert (done.exit_code, done.stdout) == (0, "B) Jupiter\n")
    assert done.stderr.startswith(
        "Which is the largest?\n  A) Mars\n  B) Jupiter\n\nRound 1\n\nAgent 1\n[AGREE] Final answer: B")
    assert "2 of 3 agents gave it (agreed); Agent 3: did not speak\n" in done.stderr
    assert "1 round, 2 calls, 24 tokens" in done.stderr


def test_the_debate_is_a_study_like_any_other(ask, tmp_path):
    ask(*PLANETS)
    [folder] = (tmp_path / "runs/ask").iterdir()
    assert folder.name.endswith("-which-is-the-largest")
    status = CliRunner().invoke(main, ["status", str(folder), "--json"])
    assert json.loads(status.stdout)["done"] == 1
    decided = CliRunner().invoke(main, ["decide", str(folder), "--decision", "consensus.unanimity", "--output", "x"])
    assert decided.exit_code == 0, decided.stderr
    again = CliRunner().invoke(main, ["run", str(folder / "study.toml"), "--output", "again"])
    assert again.exit_code == 0, again.stderr


@pytest.mark.parametrize(("words", "model", "stdout", "stderr"), [
    (("What is the capital?", "--quiet"), "Final answer: Paris", "Paris\n", ""),
    (PLANETS, "I do not know", "", "\nundecided; Agent 1: no answer"),
    ((*PLANETS, "--quiet"), "I do not know", "", "no answer: "),
    *(((*PLANETS, "--use", paradigm), "[AGREE] Final answer: B", "B) Jupiter\n", "")
      for paradigm in ("mallm.memory", "mallm.report", "collective_refinement"))])
def test_a_question_with_or_without_choices_goes_to_any_paradigm_and_what_cannot_be_read_is_no_answer(
        ask, words, model, stdout, stderr):
    done = ask(*words, model=f"parrot:{model}")
    assert (done.exit_code, done.stdout) == (0 if stdout else 1, stdout), done.stderr
    assert stderr in done.stderr if stderr or "--quiet" not in words else not done.stderr


def test_several_models_debate_with_each_other(ask, tmp_path):
    assert ask(*PLANETS, "--model", "parrot:[AGREE] Final answer: A").exit_code == 0
    [folder] = (tmp_path / "runs/ask").iterdir()
    with open_study(folder) as study:
        [debate] = study.debates()
    assert [agent.model for agent in debate.agents] == ["-AGREE-Final-answer-A", "-AGREE-Final-answer-B",
                                                        "-AGREE-Final-answer-A"]


@pytest.mark.parametrize(("name", "slot"), [
    ("gpt-4o-mini", {"use": "openai.chat", "model": "gpt-4o-mini"}), ("openai.chat", {"use": "openai.chat"}),
    ("openai.caht", {"use": "openai.caht"})])
def test_a_name_that_is_no_component_s_is_a_model_of_an_openai_endpoint(name, slot):
    assert model_table(Registry(), name) == slot


def test_settings_and_the_output_are_those_of_a_run(ask, tmp_path):
    done = ask(*PLANETS, "--set", "debate.agents=5", "--output", "mine")
    assert "3 of 5 agents" in done.stderr
    assert (tmp_path / "mine/study.db").is_file()
    done = ask(*PLANETS, "--set", "limits.calls=1", "--set", "debate.rounds=1")
    assert done.exit_code == 3
    assert "stopped: limits.calls: 1 reached" in done.stderr


@pytest.mark.parametrize(("words", "model", "message"), [
    (("q", "--use", "mallm.memry"), "parrot:x", "did you mean 'mallm.memory'?"),
    (("q", "--use", "consensus.majority"), "parrot:x", "is a decision protocol, not a paradigm"),
    (("q",), "parot:x", "--model parot:x: no installed plugin 'parot' offers a model; did you mean 'parrot'?"),
    (("q",), "parrot.caht", "did you mean 'parrot.chat'?"),
    (("q",), "parrot:no key", "models.model: its key is not set"),
    (("q", "--set", "debate.rouns=2"), "parrot:x", "did you mean 'rounds'?"), (("",), "parrot:x", "dataset.question"),
    (("q", "--choice", "yes"), "parrot:x", "name two choices or more, each once"),
    (("q", "--choice", "yes", "--choice", "yes"), "parrot:x", "each once"),
    (("q",), None, "no model is named, and the embedded one is not installed"),
    (("q", "--file", "x"), "parrot:x", "--file: goes with --seat or --council"),
    (("q", "--seat", "a=parrot:x"), "parrot:x", "--model: goes without --seat and --council")])
def test_mistakes_are_named(ask, monkeypatch, words, model, message):
    monkeypatch.setattr("madplug_ask.study.EMBEDDED", "gone.chat")
    done = ask(*words, model=model)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_an_endpoint_that_cannot_be_reached_is_told_while_it_is_waited_for(ask):
    done = ask("q", "--set", "models.model.deadline=3", model="parrot:gone")
    assert done.exit_code == 1
    assert "(model 'model' cannot be reached; trying again: no connection" in done.stderr


# What is shown

ID = DebateId("main", 0, "question")


def say(transcript, id, agent, content, key, round=1, **more):
    message = Message(id, round, 0, agent, "improve", content, answer=key, key=key, **more)
    transcript.message_recorded(MessageRecorded(ID, message, None))


@pytest.fixture
def shown():
    text = StringIO()
    transcript = Transcript(Console(file=text, width=30))
    transcript.agents_cast(AgentsCast(ID, tuple(Agent(i, Persona(f"Agent {i + 1}"), "m") for i in range(2))))
    return transcript, text


def request(agent, round=1):
    return Request((), "discuss", "m", agent, round=round)


def test_replies_that_are_written_at_the_same_time_are_shown_one_after_the_other(shown):
    transcript, text = shown
    one, two = transcript.listen(request(0)), transcript.listen(request(1))
    for a, b in zip(("I ", "say ", "A"), ("And ", "I ", "B"), strict=True):
        one(a)
        two(b)
    assert text.getvalue() == "\nRound 1\n\nAgent 1\nI say A"
    say(transcript, 0, 0, "I say A", "A")
    say(transcript, 1, 1, "And I B", "B")
    assert text.getvalue() == "\nRound 1\n\nAgent 1\nI say A\n  A\n\nAgent 2\nAnd I B\n  B\n"


def test_each_round_has_a_heading_and_a_change_of_mind_and_a_retraction_are_marked(shown):
    transcript, text = shown
    say(transcript, 0, 0, "I say A", "A")
    say(transcript, 1, 1, "A\x1b[2J", "A")
    say(transcript, 2, 0, "I say B", "B", round=2)
    say(transcript, 2, 0, "I say B", "B", round=2, retracted=True)
    for id, key in enumerate("CA", 3):
        say(transcript, id, 1, f"I say {key}", key, round=2)  # a further sample of an agent is no change of mind
    transcript.listen(request(1, round=3))("Third")
    assert text.getvalue() == (
        "\nRound 1\n\nAgent 1\nI say A\n  A\n\nAgent 2\nA\ufffd[2J\n  A\n\nRound 2\n\nAgent 1\nI say B\n  A -> B\n"
        "  (round 2, Agent 1: retracted)\n\nAgent 2\nI say C\n  A -> C\n\nAgent 2\nI say A\n  A\n"
        "\nRound 3\n\nAgent 2\nThird")
