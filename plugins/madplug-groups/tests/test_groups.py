import pytest

from madplug import UserError
from madplug_groups import GroupExchange, Members, Stages
from madplug_testing import play

SHORT = {"first": "QUESTION", "exchange": "OTHERS\n{answers}", "block": "{content}", "summary": "POOL\n{summary}",
         "summarise": "GROUP\n{answers}"}


def discussed(summaries, **more):
    """Replies are the number of the round and a letter for the agent."""
    said = {}

    def reply(request):
        if request.purpose == "summarise":
            return next(summaries)
        said[request.agent] = said.get(request.agent, 0) + 1
        return f"{said[request.agent]}{'abcdefgh'[request.agent]}"

    order = Stages(**{"groups": 3, "stages": 2, "length": 2, **more})
    return play(styles=[GroupExchange(**SHORT)], turns=order, visibility=Members(), agents=7, rounds=4, replies=reply)


def test_an_agent_reads_its_group_then_all_summaries_then_its_group_again():
    played = discussed(iter("sS$"))
    groups, pool = ("abc", "de", "fg"), "POOL\ns\n\nS\n\n$"  # neighbours, whose sizes differ by one at most
    assert [m.stage for m in played.messages if m.round == 1] == [f"group {g}" for g in (0, 0, 0, 1, 1, 2, 2)]
    asked = [[m["content"] for m in r.messages] for r in played.requests if r.purpose == "summarise"]
    assert asked == [["GROUP\n" + "\n\n".join(f"2{one}" for one in group)] for group in groups]
    for agent, me in enumerate("abcdefg"):
        others = [one for group in groups if me in group for one in group if one != me]
        first, third = ("OTHERS\n" + "\n\n".join(f"{n}{one}" for one in others) for n in (1, 3))
        assert [[m["content"] for m in r.messages] for r in played.requests
                if r.agent == agent and r.purpose == "discuss"] == [
            ["QUESTION"], ["QUESTION", f"1{me}", first], ["QUESTION", f"2{me}", pool], ["QUESTION", f"3{me}", third]]


@pytest.mark.parametrize(("agents", "count", "stages", "length", "calls", "read"), [
    (6, 3, 2, 2, 27, 30), (5, 2, 2, 2, 22, 2 * 8 + 5 * 2), (6, 1, 2, 2, 24, 90), (4, 2, 3, 1, 16, 16),
    (6, 3, 1, 2, 12, 6)])
def test_calls_and_texts_read_follow_the_formula(run_debate, agents, count, stages, length, calls, read):
    result, requests, plan = run_debate(
        f'paradigm = "groups.debate"\nagents = {agents}\nrounds = {stages * length}\n'
        f'turns = {{groups = {count}, stages = {stages}, length = {length}}}', lambda r: "Final answer: A")
    assert plan.cells[0].worst_calls() == result.calls == len(requests) == calls
    answering = [m for m in result.messages if m.answers]
    own = {m.id: m.agent for m in answering}
    assert sum(own.get(i) != m.agent for m in answering for i in m.seen) == read


def test_a_summary_is_no_answer_and_the_plurality_of_the_last_round_decides(run_debate):
    said = {}

    def reply(request):
        said[request.agent] = said.get(request.agent, 0) + 1
        late = request.agent in (1, 2, 3, 4) and said[request.agent] == 4
        return "Final answer: A" if request.purpose == "summarise" or not late else "Final answer: B"

    result, _, _ = run_debate('paradigm = "groups.debate"', reply)
    assert [m.key for m in result.messages if m.stage == "summary"] == [None] * 3
    assert (result.decision.key, result.decision.scores) == ("B", {"A": 2, "B": 4})


@pytest.mark.parametrize(("more", "problem"), [
    ("rounds = 2", "2 rounds for 2 stages of 2; set debate.rounds = 4"),
    ("agents = 2", "groups = 3, and there are 2 agents")])
def test_every_stage_has_a_round_and_every_group_an_agent(run_debate, more, problem):
    with pytest.raises(UserError, match=problem):
        run_debate(f'paradigm = "groups.debate"\n{more}', ())


@pytest.mark.parametrize(("agents", "count", "told"), [(3, 3, True), (5, 3, True), (6, 3, False), (3, 1, False)])
def test_groups_of_one_are_a_warning(agents, count, told):
    cell = type("Cell", (), {"wanted": agents})
    assert any("discuss with nobody" in text for text in Stages(groups=count).warn(cell)) is told
