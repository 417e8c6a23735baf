"""Exchange-of-Thought from one line of a run file."""



def said(request):
    return "Final answer: " + "ABA"[request.agent]


def test_the_number_of_agents_can_be_changed(run_debate):
    result, requests, _ = run_debate('paradigm = "eot.relay"\nagents = 5\nrounds = 2',
                               lambda r: f"Final answer: {'AB'[r.agent % 2]}")
    assert len(requests) == 10
    assert len({a.persona.name for a in result.agents}) == 5


def test_constrained_models_end_with_an_answer(run_debate):
    debate = 'paradigm = "eot.memory"\nrounds = 2\nstyles = [{use = "eot.exchange", max_characters = 70}]'
    assert all("{0,70}" in r.form["regex"] for r in run_debate(debate, said)[1])
