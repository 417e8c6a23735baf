import pytest

from madplug import UserError
from madplug_groups import GroupExchange, Members, Stages
from madplug_testing import play

SHORT = {"first": "QUESTION", "exchange": "OTHERS\n{answers}", "block": "{content}", "summary": "POOL\n{summary}",
         "summarise": "GROUP\n{answers}"}


def numbered():
    """Replies that are the number of the round and of the agent, and summaries `s` and the agent."""
    rounds = {}

    def reply(request):
        if request.purpose == "summarise":
            return f"s{request.agent if request.agent is not None else ''}"
        rounds[request.agent] = rounds.get(request.agent, 0) + 1
        return f"{rounds[request.agent]}{'abcdefgh'[request.agent]}"
    return reply


def groups(agents=6, groups=3, stages=2, length=2, replies=None):
    return play(styles=[GroupExchange(**SHORT)], turns=Stages(groups=groups, stages=stages, length=length),
                visibility=Members(), agents=agents, rounds=stages * length, replies=replies or numbered())


def chats(played, agent):
    return [[m["content"] for m in r.messages] for r in played.requests
            if r.agent == agent and r.purpose == "discuss"]


def test_an_agent_reads_its_group_then_all_summaries_then_its_group_again():
    replies = iter("sS$")
    count = numbered()
    played = groups(replies=lambda r: next(replies) if r.purpose == "summarise" else count(r))
    pool = "POOL\ns\n\nS\n\n$"
    assert chats(played, 0) == [["QUESTION"], ["QUESTION", "1a", "OTHERS\n1b"], ["QUESTION", "2a", pool],
                                ["QUESTION", "3a", "OTHERS\n3b"]]
    assert chats(played, 5)[2:] == [["QUESTION", "2f", pool], ["QUESTION", "3f", "OTHERS\n3e"]]
    asked = [r.messages for r in played.requests if r.purpose == "summarise"]
    assert [m[0]["content"] for m in asked] == ["GROUP\n2a\n\n2b", "GROUP\n2c\n\n2d", "GROUP\n2e\n\n2f"]
    assert all(len(m) == 1 for m in asked)


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


def test_groups_are_neighbours_whose_sizes_differ_by_one_at_most():
    played = groups(agents=7, stages=1)
    assert [m.stage for m in played.messages if m.round == 1] == [f"group {g}" for g in (0, 0, 0, 1, 1, 2, 2)]


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


def test_it_works_with_choices_numbers_and_texts(run_on_endpoint, kind_of_answer):
    answers, row, key = kind_of_answer
    [result], bodies = run_on_endpoint('debate = {paradigm = "groups.debate"}', [row],
                                       lambda body: f"Because.\nFinal answer: {key}", answers=answers)
    assert (len(bodies), result.decision.agreed) == (27, True)
    assert all("system" not in [m["role"] for m in body["messages"]] for body in bodies)
