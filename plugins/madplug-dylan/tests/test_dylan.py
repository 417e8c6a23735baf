import json
import re
from pathlib import Path

import pytest

from madplug import Message, open_study
from madplug_dylan import Consensus, Importance, Order, Previous, Rating, Unread, importances, read_ratings, weights_of
from madplug_testing import debate_from, play
from madplug_testing.endpoint import running_endpoint

SHORT = {"first": "{question}", "later": "LATER\n{answers}\nOF {count}", "item": "{number}: {content}", "system": ""}
TRACES = Path(__file__).parents[4] / "shared" / "data" / "traces"


def dylan(replies, agents=4, rounds=3, **options):
    return play(styles=[Rating(**SHORT)], turns=Order(item="{number}: {content}", rank="RANK\n{answers}", **options),
                visibility=Previous(), decision=Consensus(), replies=replies, agents=agents, rounds=rounds,
                metrics={"unread": Unread(), "importance": Importance()})


def listed(text):
    """The items of a request, by number."""
    return re.findall(r"^\d+: (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize(("text", "count", "ratings"), [
    ("[[1,2]] and at last [[5, 3,1]]", 3, [5, 3, 1]), ("[[4, x, 2.5, -3]]", 4, [4, 0, 0, -3]),
    ("[[5, 3]]", 3, None), ("no list", 1, None), ("[[]]", 1, [0]), ("[5, 3]", 2, None)])
def test_the_last_list_of_the_right_length_counts(text, count, ratings):
    assert read_ratings(text, count) == ratings


def test_ratings_become_shares():
    for ratings, weights in (([5, 5], [0.5, 0.5]), ([4, 4, 2], [0.4, 0.4, 0.2]), ([1, 0, 7], [1 / 6, 0, 5 / 6]),
                             ([0, -2], [0.5, 0.5])):
        assert weights_of(ratings) == pytest.approx(weights)


@pytest.mark.parametrize(("third", "first_round", "sums"), [
    ("[[5,3]]", [0.3556, 0.3556, 0.2889], [0.6889, 0.6889, 0.6222]),
    ("[[1,0,7]]", [0.3, 0.2444, 0.4556], [0.6333, 0.5778, 0.7889])])
def test_importance_flows_back_along_the_ratings_from_those_who_answer_as_decided(third, first_round, sums):
    messages = [Message(i, 1, i, i, "draft", key, key=key) for i, key in enumerate("ABA")]
    assert importances(messages, "A") == [{0: 0.5, 1: 0.0, 2: 0.5}]
    assert importances([], "A") == []
    for j, given in enumerate(["[[5,5,5]]", "[[4,4,2]]", third]):
        weights = weights_of(read_ratings(given, 3) or [0, 0, 0])
        rated = {"weights": {str(i): w for i, w in enumerate(weights)}}
        messages.append(Message(3 + j, 2, j, j, "improve", "A", key="A", data={"dylan": rated}))
    found = importances(messages, "A")
    assert list(found[0].values()) == pytest.approx(first_round, abs=1e-4)
    assert list(found[1].values()) == pytest.approx([1 / 3] * 3)
    assert [found[0][i] + found[1][i] for i in range(3)] == pytest.approx(sums, abs=1e-4)


def test_ratings_are_of_those_who_wrote_what_was_shown_in_an_order_of_ones_own():
    orders = set()

    def reply(request):
        items = listed(request.messages[0]["content"])
        orders.add(tuple(items))
        ratings = ["5" if item == "by 2" else "0" for item in items]
        return f"by {request.agent}" if not items else f"x{request.agent} [[{', '.join(ratings)}]]"

    played = dylan(reply, rounds=2)
    rated = [m.data["dylan"]["weights"] for m in played.messages if m.round == 2]
    assert rated == [{"0": 0, "1": 0, "2": 1, "3": 0}] * 4
    assert len(orders - {()}) > 1
    assert {tuple(sorted(items)) for items in orders - {()}} == {tuple(f"by {i}" for i in range(4))}
    assert [r.agent for r in played.requests[:4]] != [r.agent for r in played.requests[4:]]


@pytest.mark.parametrize(("agents", "needed"), [(2, 2), (3, 3), (4, 3), (5, 4), (6, 5), (7, 5)])
def test_a_round_stops_as_soon_as_more_than_two_thirds_agree(agents, needed):
    played = dylan(lambda request: "A", agents=agents)
    assert (played.result.calls, played.decision.agreed) == (needed, True)
    replies = iter("B" + "A" * 12)
    late = dylan(lambda request: next(replies), agents=agents)
    assert late.result.calls == (needed + 1 if needed < agents else agents + needed)


def rounds_of_four(request, ranked="[1, 2]"):
    """Four agents that never agree before round 3, in which they do."""
    text = request.messages[0]["content"]
    if request.purpose == "rank":
        return ranked
    if "LATER" not in text:
        return f"first {request.agent}"
    return "same" if any("second" in item for item in listed(text)) else f"second {request.agent}"


@pytest.mark.parametrize(("ranked", "acting", "unread"), [
    ("[1, 2]", {0, 1}, 0), ("[4, 9]", {3}, 0), ("[2,2]", {1}, 0), ("[1, 2] then [3, 1]", {0, 2}, 0), ("none", None, 1),
    ("[0, 2]", None, 1)])
def test_from_round_three_on_those_of_the_rankers_last_pair_act_and_without_one_two_are_drawn(ranked, acting, unread):
    played = dylan(lambda request: rounds_of_four(request, ranked))
    [rank] = [r for r in played.requests if r.purpose == "rank"]
    shown = listed(rank.messages[0]["content"])
    assert sorted(shown) == [f"second {i}" for i in range(4)]
    last = {m.agent for m in played.messages if m.round == 3}
    assert len(last) == 2 if acting is None else {f"second {a}" for a in last} == {shown[i] for i in acting}
    assert (played.metrics["unread.ratings"], played.metrics["unread.rankings"]) == (4 + len(last), unread)
    assert (played.result.calls, played.decision.key, played.result.unread) == (9 + len(last), "same", True)
    assert played.decision.agreed == (len(last) == 2)  # one alone does not agree with anybody
    published = [m for m in dylan(lambda request: rounds_of_four(request, ranked), acting="as_published").messages
                 if m.round == 3]  # those at the places that are numbered like the chosen
    assert set(published[0].data["dylan"]["chosen"]) == last
    assert ranked != "[1, 2]" or {m.agent for m in published} != last


@pytest.mark.parametrize(("agents", "rounds", "calls"), [(4, 3, 11), (7, 3, 17), (4, 5, 15), (3, 3, 9), (2, 3, 6)])
def test_check_counts_the_calls_without_agreement_and_two_are_not_ranked_again(run_debate, agents, rounds, calls):
    replies = iter(f"[1, 2] Final answer: {i}" for i in range(100))
    result, requests, plan = run_debate(f'paradigm = "dylan.debate"\nagents = {agents}\nrounds = {rounds}',
                                        lambda request: next(replies), answers="number", choices=None, reference="1")
    assert plan.cells[0].worst_calls() == result.calls == len(requests) == calls


@pytest.mark.parametrize(("rows", "key", "agreed", "tie"), [
    ("A B A A", "A", True, False), ("A B B A", "A", False, True), ("- - - B", "B", False, False),
    ("- - - -", None, False, False)])
def test_an_unreadable_reply_never_wins(rows, key, agreed, tie):
    decision = Consensus().at_end(debate_from(rows))
    assert (decision.key, decision.agreed, decision.tie) == (key, agreed, tie)


STUDY = """
dataset = {{use = "files.table", path = "q.jsonl", answers = "choice", columns = {{group = "subject"}}}}
models.m = {{use = "openai.chat", model = "m", base_url = "{url}"}}
[debate]
paradigm = "dylan.debate"
rounds = {rounds}
{more}
"""


def test_a_team_of_each_subject_is_chosen_by_importance_in_an_earlier_study(program):
    for plugin in ("answers", "files", "openai"):
        pytest.importorskip(f"madplug_{plugin}")
    subjects = {"law": ("doctor", "lawyer"), "physics": ("economist", "doctor")}  # who agree there, and so decide
    rows = [{"id": f"q{i}", "question": f"Which, in {subject}?", "choices": ["one", "two"], "reference": "A",
             "subject": subject} for i, subject in enumerate(["law", "law", "physics"])]
    Path("q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def reply(body):
        who, question = (message["content"] for message in body["messages"])
        agreeing = next(of for subject, of in subjects.items() if subject in question)
        return f"Final answer: ({'A' if any(role in who for role in agreeing) else 'B'})"

    def run(name, more, rounds=1):
        Path(f"{name}.toml").write_text(STUDY.format(url=endpoint.url, more=more, rounds=rounds))
        done = program("run", f"{name}.toml", "--output", name)
        with open_study(name) as study:
            return [[a.persona.name for a in r.agents] for r in study.results()], done.output

    with running_endpoint(reply) as endpoint:
        run("first", "agents = 3\n[[cells]]\nname = 'others'\ndebate = {rounds = 1, personas = ['personas.neutral']}\n"
            "[[cells]]\nname = 'rated'", rounds=2)
        team = 'personas = [{use = "dylan.team", study = "first"%s}]\nagents = %d'
        assert run("per-group", team % ("", 2))[0] == [["Doctor", "Lawyer"]] * 2 + [["Economist", "Doctor"]]
        assert run("per-study", team % (', per = "study"', 2))[0] == [["Doctor", "Lawyer"]] * 3
        assert "3 personas to choose from" in run("many", team % ("", 4))[1]
        Path("missing.toml").write_text(Path("per-group.toml").read_text().replace('"first"', '"frist"'))
        assert "'study': " in (said := program("check", "missing.toml", status=2).stderr)
        assert "did you mean 'first'?" in said
        run("unrated", "agents = 3")
        assert run("of-unrated", team.replace("first", "unrated") % ("", 2))[0] == [["Doctor", "Lawyer"]] * 2 + [
            ["Economist", "Doctor"]]


@pytest.mark.skipif(not TRACES.is_dir(), reason="no recorded debates beside the checkout")
@pytest.mark.parametrize(("agents", "rows", "published", "ignored"), [(3, 1385, 970, 971), (4, 1353, 963, 970)])
def test_recorded_debates_are_decided_as_reported_except_for_ties(agents, rows, published, ignored):
    right = {"as_published": [], "ignored": []}
    for line in (TRACES / f"dylan_mmlu_n{agents}.trajectories.jsonl").read_text().splitlines():
        row = json.loads(line)
        last = [[key] for key, spoke in zip(row["answers"][-1], row["spoke"][-1], strict=True) if spoke]
        for unread, found in right.items():
            found.append(Consensus(unread=unread).at_end(debate_from(last)).key == row["ref"])
        assert row["tie"] or right["as_published"][-1] == row["reported_correct"], row["qid"]
    assert len(right["ignored"]) == rows
    assert (sum(right["as_published"]), sum(right["ignored"])) == (published, ignored)
