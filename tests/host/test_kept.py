"""Values that are made once in a debate."""

from madplug import Reply, Style
from madplug.store import MemoryStore
from madplug_testing import play


class Diary(Style):
    """Makes a page once in each debate, and breaks off in the second round as long as `broken`."""

    name = "diary"
    moves = frozenset({"improve", "draft"})

    def __init__(self, *, broken=False, pages=None):
        super().__init__()
        self.broken, self.pages = broken, [] if pages is None else pages

    async def respond(self, debate, turn, view):
        async def make():
            self.pages.append(f"page {len(self.pages)} of repeat {debate.repeat}")
            return self.pages[-1]

        kept = await debate.keep("diary:page", make)
        if self.broken and debate.round == 2:
            raise ValueError("out of ink")
        return Reply(kept, "x")


def test_a_value_is_made_once_in_each_debate_also_when_the_debate_is_run_again():
    store, pages = MemoryStore(), []
    play(styles=[Diary(broken=True, pages=pages)], agents=1, rounds=2, repeats=2, store=store, expect_failure=True)
    play(styles=[Diary(pages=pages)], agents=1, rounds=2, repeats=2, store=store)
    said = [[m.content for m in result.messages] for result in store.results("play")]
    assert said == [["page 0 of repeat 0"] * 2, ["page 1 of repeat 1"] * 2]
    assert len(pages) == 2
