"""The pages in a real browser: what one sees, filters, replays and follows, with the mouse and with keys alone."""

import json
import os
import re
from contextlib import ExitStack
from dataclasses import replace

import pytest
from tests_support import chromium

from madplug import DebateId
from madplug.store import open_recorder
from madplug_view import export, studies
from madplug_view.levels import levels

sync_api = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")
expect = sync_api.expect
expect.set_options(timeout=30_000)
pytestmark = pytest.mark.usefixtures("without_charts")
TALKED_OUT = "#/debate/small/plain/0/talked-out"
WIDTHS = "Promise.all(Array.from(document.querySelectorAll('.charts img'), i => i.decode().then(() => i.naturalWidth)))"
"""The widths of the charts once they are there; the page's policy forbids what Playwright waits with for a function."""
PAGES = {
    "study": "#/study/small", "all": "#/cell/small/", "cell": "#/cell/small/plain",
    "filtered": "#/cell/small/plain?traits=failed", "debate": TALKED_OUT,
    "replay": f"{TALKED_OUT}?at=4", "failed": "#/debate/small/plain/0/broken",
    "compare": "#/compare/small/plain/other%20way", "pair": "#/pair/small/plain/other%20way/0/talked-out"}


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture
def serve(kit):
    """Serve studies until the pages of a test are closed, and get their address."""
    with ExitStack() as stack:
        yield lambda *folders: stack.enter_context(kit.serving_here(*folders)).url


@pytest.fixture
def open_page(browser, serve):
    """Open an address; at the end of a test, nothing was wrong on the console, and no other host was asked."""
    pages, wrong, asked = [], [], set()

    def open_page(address, **more):
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 900}} | more))
        page = context.new_page()
        page.set_default_timeout(40_000)
        page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda r: asked.add(re.match(r"http://[^/:]*|\w+:", r.url)[0]))
        page.goto(address)
        pages.append(context)
        return page

    def refused(host):
        """Check that the page's policy has refused everything that the test has tried, this host included."""
        pages[-1].pages[0].wait_for_timeout(100)
        assert any(host in text and "violates" in text for text in wrong)
        assert all("violates" in text or "Trusted" in text for text in wrong)
        wrong.clear()
        asked.discard(host)

    open_page.refused = refused
    yield open_page
    for context in pages:
        context.close()
    assert not wrong
    assert asked <= {"http://127.0.0.1", "file:", "data:"}


@pytest.fixture(scope="module")
def address(kit, folder):
    """The address of the small study."""
    with kit.serving_here(folder) as found:
        yield found.url


@pytest.fixture
def show(open_page, address):
    """Open a page of the small study."""
    def show(hash="", **more):
        page = open_page(address + hash, **more)
        expect(page.locator("main h1")).to_be_visible()
        return page

    return show


@pytest.fixture
def look(kit, tmp_path, serve, open_page):
    """Open a page of a study: `look("#/cell/s/c", *debates)`; of a folder, or of one to be written."""
    def look(hash, *debates, folder=None, exported=False, **more):
        folder = folder or kit.write(tmp_path / "s", debates, **more)
        if exported:
            export.export(studies.open_studies([folder]), tmp_path / "page.html")
        return open_page(((tmp_path / "page.html").as_uri() if exported else serve(folder)) + hash)

    return look


def go(page, hash):
    """Go to another page."""
    page.evaluate("hash => { location.hash = hash }", hash)


def said(page):
    """The ids of the messages that are shown."""
    return page.locator(".card:not(.later)").evaluate_all("cards => cards.map(c => c.dataset.id)")


def moment(page):
    return re.search(r"at=(\d+)", page.url)[1]


@pytest.fixture(params=[None, 8_000_000, 1000], ids=["served", "exported to one page", "exported in chunks"])
def small(request, address, folder, tmp_path, monkeypatch):
    """The address of the small study, served, or exported with a chart."""
    if request.param is None:
        return address
    svg = ('<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20"><style>path{fill:red}</style>'
           '<path d="M0 0h9v9z"/></svg>')
    chart = {"name": "ends", "title": "How debates ended", "caption": "All of them.", "svg": svg}
    monkeypatch.setattr(export, "can_draw", lambda: True)
    monkeypatch.setattr(studies, "draw", lambda folder: [chart])
    monkeypatch.setattr(export, "ONE_PAGE", request.param)
    assert export.export(studies.open_studies([folder]), tmp_path / "out").startswith("7 debates in ")
    assert (tmp_path / "out" / "data").exists() == (request.param == 1000)
    return (tmp_path / "out" / "index.html").as_uri()


def test_from_the_study_to_the_prompt_behind_a_change_of_mind_and_to_another_cell(small, open_page):
    page = open_page(small)
    expect(page.locator(".cells tbody tr")).to_have_count(2)
    assert "token" not in page.url
    if "out" in small:
        expect(page.get_by_role("img", name="How debates ended")).to_be_visible()
        assert page.evaluate(WIDTHS) == [40]
    page.get_by_role("link", name="plain", exact=True).click()
    expect(page.locator("a.row")).to_have_count(5)
    page.get_by_role("button", name="right turned wrong").click()
    expect(page.locator("a.row")).to_have_count(1)
    page.locator("a.row").click()
    expect(page.locator(".story")).to_contain_text(re.compile(
        r"Ada went from A\s?✓ \(right\) to B\s?✗ \(wrong\) after being shown Ben and Cleo, who said so"))
    page.get_by_role("button", name="the prompt it saw").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("prompt of message 3 of talked-out")
    expect(dialog).to_contain_text("I say B.")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    go(page, PAGES["all"])
    expect(page.locator("a.row")).to_have_count(7)
    go(page, PAGES["compare"])
    expect(page.locator(".fourfold .count").first).to_have_text("1")
    assert page.locator(".fourfold .count").all_inner_texts() == ["1", "0", "1", "0"]
    expect(page.get_by_text("of plain left out: the other cell has no score")).to_contain_text("3 debates")
    page.locator(".fourfold .lost .count").click()
    page.locator("a.row").click()
    expect(page.locator(".half")).to_have_count(2)


@pytest.mark.parametrize(("keys", "told"), [
    ("ABB BAB A", r" after being shown Ben, who said so\."),
    ("BAA BBB A", r", once the answer of Ben and Cleo, but no longer of any agent that it was shown\."),
    ("ABB BBB A", r", an earlier answer of its own, which no other agent that it was shown gave\."),
    ("BBB BBB A", r", which no message that it was shown had said\."),
    ("ABB BAB A", r" after being shown Ben, who said so; some of what it was shown reached it in a changed form\.")])
def test_a_change_of_mind_names_the_agents_whose_latest_shown_answer_it_was(kit, look, keys, told):
    made = kit.debate("plain", "long", keys=[[*row.ljust(3, "C")] for row in keys.split()])
    altered = (1,) if "changed form" in told else ()
    messages = tuple(replace(m, seen=tuple(range(m.id)), altered=altered) if m.round == 3 else m for m in made.messages)
    page = look("#/debate/s/plain/0/long", replace(made, messages=messages))
    change = page.locator(".story li").filter(has_text="round 3 Ada")
    expect(change).to_contain_text(re.compile(r"to A\s?✓ \(right\)" + told))


def test_debates_in_which_a_right_minority_lost_are_one_click_away(show):
    page = show()
    page.get_by_role("link", name="a right minority lost, and a right answer was given up").click()
    for name in ("right turned wrong", "a right minority at first", "wrong"):
        expect(page.get_by_role("button", name=re.compile(rf"^{name} \d"))).to_have_attribute("aria-pressed", "true")
    expect(page.locator("a.row")).to_contain_text("talked-out")


def test_ballots_and_personas_are_one_click_from_their_prompts(small, open_page):
    page = open_page(small + TALKED_OUT)
    page.locator(".verdict .behind").get_by_role("button", name="vote (3)").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator("details")).to_have_count(3)
    expect(dialog.locator("details").nth(1)).to_contain_text(
        re.compile(r"vote · Ben, round 2 reply of vote 1.*prompt of vote 1"))
    page.keyboard.press("Escape")
    page.get_by_text("3 ballots").click()
    page.get_by_role("button", name="prompt and reply").nth(2).click()
    expect(dialog).to_contain_text("Asked of Cleo")
    expect(dialog).to_contain_text("prompt of vote 2")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="persona").click()
    expect(dialog).to_contain_text("prompt of persona None")


def test_a_prompt_says_whose_messages_it_quotes(kit, look):
    page = look("#/debate/s/c/0/q", kit.debate("c", "q", text="I say {key} after long thought."),
                prompt="Before.\n\nI say A after long thought.\n\nAfter.")
    page.locator("#m3").get_by_role("button", name="prompt").click()
    whose = re.compile(r"^Ada, round 1 A\s?✓ \(right\)I say A after long thought\.$")
    expect(page.locator(".quote")).to_have_text(whose)
    expect(page.locator(".sent.user")).to_contain_text("After.")


def test_all_debates_are_filtered_together(show):
    page = show()
    page.get_by_role("link", name="All debates").click()
    expect(page.locator("a.row")).to_have_count(7)
    page.get_by_role("button", name="changed mind").click()
    expect(page.locator("a.row")).to_have_count(3)
    expect(page.locator("a.row").last).to_contain_text("other way · talked-out")
    page.locator("a.row").first.click()
    expect(page.locator("h1")).to_contain_text("corrected")
    page.keyboard.press("n")
    expect(page.locator("h1")).to_contain_text("talked-out")
    page.keyboard.press("n")
    expect(page.locator(".crumbs")).to_contain_text("other way")


def test_cells_are_sorted_and_filtered_by_name(kit, look):
    page = look("", *(kit.debate(f"agents={n}", "q", decision="A" if n == 3 else "B") for n in range(1, 11)))
    first = page.locator(".cells tbody a").first
    expect(first).to_have_text("agents=1")
    page.get_by_role("button", name="qa.accuracy").click()
    expect(first).to_have_text("agents=3")
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("qa.accuracy")
    for _ in range(2):
        page.get_by_role("button", name="cell", exact=True).click()
    expect(first).to_have_text("agents=10")
    page.get_by_placeholder("Filter by name").fill("=2")
    expect(page.locator(".cells tbody tr")).to_have_count(1)
    page.reload()
    expect(page.locator(".cells tbody tr")).to_have_count(1)


def test_filters_add_up_and_stay_in_the_address_and_rows_are_sorted_searched_and_opened_side_by_side(show):
    page = show("#/cell/small/plain")
    for name in ("changed mind", "wrong"):
        page.get_by_role("button", name=re.compile(f"^{name} \\d")).click()
    expect(page.locator("a.row")).to_have_count(1)
    page.reload()
    expect(page.locator("a.row")).to_have_count(1)
    expect(page.get_by_role("button", name="wrong 1", exact=True)).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="clear all").click()
    expect(page.locator("a.row")).to_have_count(5)
    page.get_by_label("Sort by").select_option("calls")
    page.get_by_role("button", name="descending").click()
    expect(page.locator("a.row").first).to_contain_text("talked-out")
    page.get_by_role("searchbox").fill("question SPLIT")
    expect(page.locator("a.row")).to_have_count(1)
    page.get_by_role("searchbox").fill("nowhere at all")
    expect(page.get_by_role("status")).to_contain_text("No debate fits")
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Differs from").select_option("other way")
    expect(page.locator("a.row")).to_have_count(1)
    page.locator("a.row").click()
    expect(page.locator(".half")).to_have_count(2)
    chips = page.locator(".verdict .chip.big")
    expect(chips.nth(0)).to_contain_text("B")
    expect(chips.nth(1)).to_contain_text("A")


def test_cells_of_two_studies_are_compared_from_the_list_of_studies(kit, tmp_path, look):
    for name in ("one", "two"):
        kit.small_study(tmp_path / name)
    os.utime(tmp_path / "one/study.db", (0, 0))
    page = look("", folder=tmp_path)
    expect(page.locator(".cells tbody a")).to_have_text(["two", "one"])
    page.get_by_role("button", name="study").click()
    expect(page.locator(".cells tbody a")).to_have_text(["one", "two"])
    page.get_by_role("group", name="Second").get_by_label("Cell").select_option("other way")
    page.get_by_role("link", name="Compare on the same samples").click()
    expect(page.locator("h1")).to_have_text("Two cells compared")
    assert page.locator(".fourfold .count").all_inner_texts() == ["1", "0", "1", "0"]
    page.locator(".fourfold .lost .count").click()
    page.locator("a.row").click()
    expect(page.locator(".half")).to_have_count(2)


def with_settings(folder, cells):
    """The study with a summary that has these settings of cells."""
    (folder / "summary.json").write_text(json.dumps({"cells": [
        {"cell": cell, "settings": settings} for cell, settings in cells.items()]}))
    return folder


def test_the_test_of_two_cells_is_of_the_metric_in_the_address(kit, look, monkeypatch):
    pytest.importorskip("madplug_report", reason="the paired test is madplug-report's")
    monkeypatch.setattr(studies, "can_draw", lambda: True)
    debates = [kit.debate(cell, f"q{i}", metrics={"qa.accuracy": float(i < 6), "other.one": float(cell == "b")})
               for cell in "ab" for i in range(8)]
    page = look("#/compare/s/a/b?metric=qa.accuracy", *debates)
    difference = page.get_by_text("a less b:")
    expect(difference).to_contain_text("+0.000")
    go(page, "#/compare/s/a/b?metric=other.one")
    expect(page.locator(".facts")).to_contain_text("other.one")
    expect(difference).to_contain_text("−1.000")


def test_cells_are_a_grid_whose_fields_open_them(kit, tmp_path, look):
    cells = {"z": {"debate.decision": "z"}} | {
        f"{d},{n}": {"debate.decision": d, "debate.agents": n} for d in "xy" for n in (10, 3)}
    scores = {"z": 1.0, "x,3": 0.5, "y,3": 0.5}
    debates = [kit.debate(cell, "q", metrics={"qa.accuracy": scores.get(cell, 0.0)}) for cell in cells]
    page = look("", folder=with_settings(kit.write(tmp_path / "s", debates), cells))
    expect(page.get_by_text("Not shown: 1 cell without")).to_be_visible()
    expect(page.get_by_text("from 0.000 to 0.500")).to_be_visible()
    expect(page.locator(".pivot thead th")).to_have_text(["3", "10"])
    expect(page.locator(".pivot tbody th")).to_have_text(["x", "y"])
    expect(page.locator(".pivot td a")).to_have_text(["0.500", "0.000", "0.500", "0.000"])
    page.locator(".pivot td a").nth(1).click()
    expect(page.locator("h1")).to_have_text("x,10")
    go(page, "#/cell/s/")
    page.get_by_label("agents").select_option("3")
    expect(page.locator("a.row")).to_have_count(2)


def test_what_a_cell_inherits_stands_in_the_grid_like_what_others_name(kit, tmp_path, look):
    own = {"base": {}, "longer": {"debate.rounds": 4}, "judged": {"debate.decision": "voting.simple"}}
    told = {"use": "voting.plurality", "scope": "round"}
    identity = {"cells": {
        "base": {"debate": {"rounds": 2, "decision": told}}, "longer": {"debate": {"rounds": 4, "decision": told}},
        "judged": {"debate": {"rounds": 2, "decision": {"use": "voting.simple", "scope": "round"}}}}}
    folder = kit.write(tmp_path / "s", [kit.debate(cell, "q") for cell in own], identity=identity)
    page = look("", folder=with_settings(folder, own))
    expect(page.locator(".pivot thead th")).to_have_text(["voting.plurality", "voting.simple"])
    expect(page.locator(".pivot tbody th")).to_have_text(["2", "4"])
    assert page.locator(".pivot td a").count() == 3
    expect(page.get_by_text("Not shown")).to_have_count(0)


def test_more_than_twenty_agents_share_a_few_columns(kit, look):
    page = look("#/debate/s/c/0/q", kit.debate("c", "q", keys=(("A",) * 27,)))
    expect(page.locator(".card")).to_have_count(27)
    assert max(card.bounding_box()["width"] for card in page.locator(".card").all()) < 300


def test_factors_without_a_common_cell_leave_the_grid_to_be_chosen(kit, tmp_path, look):
    own = {"a": {"dataset.x": 1}, "b": {"dataset.x": 2}, "c": {"dataset.y": 1}, "d": {"dataset.y": 2}}
    page = look("", folder=with_settings(kit.write(tmp_path / "s", [kit.debate(cell, "q") for cell in own]), own))
    expect(page.get_by_text("No cell with a score has both of these settings.")).to_be_visible()
    expect(page.get_by_label("rows")).to_be_visible()


def test_a_matched_cell_has_as_many_agents_as_the_other_one_allows():
    resolved = {"sc": {"debate": {"agents": 5}, "match": {"cell": "som", "by": "calls"}}}
    assert levels({"som": {"debate.agents": 3}, "sc": {}}, resolved)["sc"]["debate.agents"] == "matched"


def test_every_page_of_an_oracles_study_says_so_and_cells_are_chosen_by_name(kit, tmp_path, look):
    settings = {cell: {"debate.paradigm": cell, "debate.agents": n, "match.cell": cell, "match.by": "calls"}
                for n, cell in enumerate(("plain", "other way"))}
    folder = kit.write(tmp_path / "s", [kit.debate(cell, "q1") for cell in settings],
                       identity={"oracle": True, "cells": {}})
    page = look("", folder=with_settings(folder, settings))
    for place in ("#/study/s", "#/cell/s/plain", "#/debate/s/plain/0/q1", "#/cell/s/"):
        go(page, place)
        page.get_by_text("components saw the references").wait_for()
    names = [text.split()[0] for text in page.locator("form.filters .bar label").all_inner_texts()]
    assert names.count("cell") == 1  # what a cell is matched to is nothing that cells differ in
    by_name = page.locator("form.filters select", has=page.locator("option", has_text="other way")).last
    by_name.select_option("other way")
    page.wait_for_url("**other*")
    page.get_by_text("1 debate").first.wait_for()


def test_a_note_is_written_on_the_page_of_a_debate(kit, tmp_path, look):
    page = look(TALKED_OUT, folder=kit.small_study(tmp_path / "small"))
    page.get_by_label("Tags").fill("odd, later")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("saved in notes.json")).to_be_visible()
    go(page, "#/cell/small/plain")
    page.get_by_label("My notes").select_option("odd")
    expect(page.locator("a.row")).to_have_count(1)
    expect(page.locator("a.row")).to_contain_text("odd later")


def test_a_link_keeps_its_study_whatever_others_there_are(kit, tmp_path, look):
    def began(name, sample):
        kit.write(tmp_path / "runs" / name, [kit.debate("c", sample), kit.debate("c", "both")])

    began("b", "of b")
    began("c", "of c")
    page = look("#/cell/b/c", folder=tmp_path / "runs")
    expect(page.locator("a.row", has_text="of b")).to_have_count(1)
    began("d", "of d")
    go(page, "#/cell/d/c")  # it has begun since the server was started
    expect(page.locator("a.row", has_text="of d")).to_have_count(1)
    began("a", "of a")
    page = look("#/pair/b/c/c/0/both?with=c", folder=tmp_path / "runs")
    expect(page.locator(".half > h2")).to_have_text(["c (b)", "c (c)"])
    for link, name in (("#/cell/d/c", "of d"), ("#/cell/a/c", "of a")):
        go(page, link)
        expect(page.locator("a.row", has_text=name)).to_have_count(1)
    for link in ("#/study/gone", "#/compare/b/c/c?with=gone"):
        go(page, link)
        expect(page.get_by_role("alert")).to_have_text("There is no study 'gone' here.")


@pytest.mark.parametrize("exported", [False, True])
def test_a_debate_and_a_pair_of_a_study_with_repeats_say_which_one_they_are_of(kit, look, exported):
    page = look("#/debate/s/c/0/q", *(kit.debate(cell, "q", repeat) for cell in "cd" for repeat in (0, 1)),
                kit.debate("e", "q"), exported=exported)
    for link, title in (("debate/s/c/0/q", "q · repeat 0"), ("debate/s/c/1/q", "q · repeat 1"),
                        ("pair/s/c/d/0/q", "q · repeat 0"), ("pair/s/d/c/1/q", "q · repeat 1"),
                        ("debate/s/e/0/q", "q")):
        go(page, f"#/{link}")
        expect(page.locator("h1")).to_have_text(title)


def test_a_note_that_is_being_written_stays_when_the_page_moves_on(kit, tmp_path, look):
    page = look(TALKED_OUT, folder=kit.small_study(tmp_path / "small"))
    page.get_by_label("Tags").fill("odd")
    page.get_by_role("textbox", name="Note").fill("look again")
    page.locator("h1").click()
    page.keyboard.press("Home")
    expect(page.locator(".card:not(.later)")).to_have_count(0)
    expect(page.get_by_label("Tags")).to_have_value("odd")
    expect(page.get_by_role("textbox", name="Note")).to_have_value("look again")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("saved in notes.json")).to_be_visible()
    expect(page.get_by_label("Tags")).to_have_value("odd")


def test_a_note_is_kept_when_its_debate_is_left_without_saving(kit, tmp_path, look):
    page = look(TALKED_OUT, folder=kit.small_study(tmp_path / "small"))
    note = page.get_by_role("textbox", name="Note")
    note.fill("look again")
    with page.expect_response(lambda response: "/note" in response.url and response.request.method == "PUT"):
        page.get_by_role("link", name="plain").click()
    expect(page.locator("a.row")).to_have_count(5)
    go(page, TALKED_OUT)
    expect(note).to_have_value("look again")
    note.fill("and again")
    asked = []
    page.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.accept()))
    page.reload()
    assert asked == ["beforeunload"]
    expect(note).to_have_value("look again")


def test_the_list_is_gone_through_by_keys(show):
    page = show("#/cell/small/plain")
    expect(page.locator("a.row")).to_have_count(5)
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.get_by_role("searchbox").blur()
    for key in ("j", "j", "k", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator("a.row").nth(1)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text("broken")


@pytest.mark.parametrize("exported", [False, True])
def test_the_list_goes_on_after_its_first_fifty_debates(kit, look, exported):
    page = look("#/debate/s/plain/0/q00048", *kit.some("plain", 60), exported=exported)
    place = page.get_by_role("navigation", name="Debates of the list")
    expect(place).to_contain_text(re.compile(r"49 of (50\+|60)"))  # a busy server gives the list in other parts
    page.keyboard.press("n")
    expect(place).to_contain_text("50 of 60")
    page.keyboard.press("n")
    expect(page.locator("h1")).to_have_text("q00050")
    expect(place).to_contain_text("51 of 60")
    page.reload()
    expect(place).to_contain_text("51 of 60")
    page.keyboard.press("p")
    expect(page.locator("h1")).to_have_text("q00049")


def test_a_debate_is_replayed_by_keys(show):
    page = show(TALKED_OUT)
    page.keyboard.press("Home")
    expect(page.locator(".card:not(.later)")).to_have_count(0)
    expect(page.locator(".verdict")).to_contain_text("not reached")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    assert said(page) == ["0", "1", "2", "3"]
    expect(page.locator(".story li")).to_have_count(1)
    page.keyboard.press("ArrowLeft")
    expect(page.locator(".story li")).to_have_count(0)
    expect(page.locator(".standing")).to_contain_text(re.compile(r"B\s?✗ \(wrong\) 2"))
    page.keyboard.press("End")
    expect(page.locator(".verdict .chip.big")).to_contain_text("B")
    page.get_by_role("button", name="prompt and reply").first.click()
    expect(page.locator("dialog[open]")).to_be_visible()
    page.keyboard.press("Escape")  # the focus is on a button among the messages again, which could scroll sideways
    page.keyboard.press("Home")
    expect(page.locator(".card:not(.later)")).to_have_count(0)
    page.keyboard.press("ArrowRight")
    expect(page.locator(".card:not(.later)")).to_have_count(1)


def test_an_earlier_answer_that_counts_for_an_unread_one_is_told(kit, look):
    unread = kit.debate("plain", "unread", keys=(("A", "B", "B"), ("A", None, "B")))
    page = look("", unread, kit.debate("plain", "read"))
    told = page.locator(".strip").get_by_text("could not be read (?), the bars show")
    for name in ("unread", "read"):
        go(page, f"#/debate/s/plain/0/{name}")
        expect(page.locator("h1")).to_have_text(name)
        expect(told).to_have_count(int(name == "unread"))


def test_what_could_not_be_read_is_named(kit, look):
    page = look("#/debate/s/c/0/q", kit.debate("c", "q", keys=(("A", "B", None),), notes={"m": {"unparsed": True}}))
    page.get_by_text("2 parts could not be read").click()
    expect(page.locator(".verdict details li")).to_have_text([re.compile("the last answer of .+"), "notes.m"])


def test_a_replay_has_a_link_and_a_slider_plays_pauses_and_ends(show):
    page = show(f"{TALKED_OUT}?at=2")
    expect(page.locator(".card:not(.later)")).to_have_count(2)
    assert said(page) == ["0", "1"]
    page.get_by_role("slider").fill("5")
    expect(page.locator(".card:not(.later)")).to_have_count(5)
    page.get_by_role("slider").press("Home")
    assert moment(page) == "0"
    page.get_by_label("Speed").select_option("8")
    page.locator("h1").click()
    page.keyboard.press(" ")
    page.get_by_role("button", name="Pause").click()
    assert 0 <= int(moment(page)) < 7
    page.get_by_role("button", name="Play").click()
    expect(page.locator(".moment")).to_have_text("the decision")
    expect(page.get_by_role("button", name="Play")).to_be_visible()


def test_what_an_agent_was_shown_is_drawn_when_its_message_is_pointed_at_or_focused(show):
    page = show(TALKED_OUT)
    page.locator("#m3").hover()
    expect(page.locator("path.arrow")).to_have_count(3)
    expect(page.locator(".card.seen")).to_have_count(3)
    page.mouse.move(0, 0)
    expect(page.locator("path.arrow")).to_have_count(0)
    page.locator("#m4 footer button").focus()
    expect(page.locator("path.arrow")).to_have_count(3)


def test_a_debate_with_a_retraction_and_an_altered_message_says_so(kit, look):
    plain = kit.debate("c", "q")
    first, *others = plain.messages
    changed = replace(others[2], altered=(1,), data={"channel": {"received": {"1": "say C"}}})
    messages = (first, *others[:2], changed, *others[3:], replace(others[4], id=6, retracted=True))
    page = look("#/debate/s/c/0/q", replace(plain, messages=messages))
    expect(page.locator("#m6")).to_contain_text("retracted")
    expect(page.locator("#m1")).to_contain_text("altered on the way to Ada")
    page.locator("#m3 .received summary").click()
    expect(page.locator("#m3 .received")).to_contain_text("say C")


def test_the_pages_follow_a_run(kit, tmp_path, look):
    folder = kit.write(tmp_path / "live", kit.some("plain", 3), planned=5, status=None)
    page, cell = look("", folder=folder), look("#/cell/live/plain", folder=folder)
    expect(page.locator(".progress")).to_contain_text("3 of 5 debates")
    expect(cell.locator("a.row")).to_have_count(3)
    kit.write(folder, [kit.debate("plain", "new-one"), kit.debate("plain", "new-two")], status=None)
    expect(page.locator(".progress")).to_contain_text("5 of 5 debates")
    expect(cell.locator("a.row")).to_have_count(5)


def test_the_charts_of_the_report_are_drawn_when_they_come_into_view(folder, look, monkeypatch):
    pytest.importorskip("madplug_report", reason="the charts are madplug-report's")
    monkeypatch.setattr(studies, "can_draw", lambda: True)
    page = look("", folder=folder)
    page.locator(".charts").scroll_into_view_if_needed()
    expect(page.get_by_role("img", name="How debates ended")).to_be_visible(timeout=60_000)
    assert all(page.evaluate(WIDTHS))


# Text stays text

HOSTILE = ("<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'><style>body{display:none}</style>"
           "<a href='javascript:window.hacked=1'>link</a> http://evil.example/x \x1b[31mred\x1b[0m \u202eturned\u202c"
           " </script><svg onload='window.hacked=1'> ${window.hacked=1} [md](http://evil.example)" + " more" * 90)


@pytest.mark.parametrize("exported", [False, True])
def test_text_of_a_model_is_shown_and_inert(kit, look, exported):
    page = look("", kit.debate("<b>cell</b>", "<i>id</i>/../x?y#z", text=HOSTILE,
                               keys=(("A", "<script>", "B"), ("B", "B", "B"))), exported=exported)
    page.locator(".cells a").click()
    page.locator("a.row").click()
    page.locator("#m0").get_by_text("all of it").click()
    text = page.locator("#m0 .text").inner_text()
    for part in ("<script>window.hacked = 1</script>", "⟨U+202E⟩turned", "⟨U+001B⟩[31m"):
        assert part in text
    assert page.locator("#app script, #app style, #app iframe, #app img, #app a[href^=http]").count() == 0
    page.locator("#m0").get_by_role("button", name="prompt").click()
    expect(page.get_by_role("dialog")).to_contain_text("window.hacked = 1")
    assert page.evaluate("window.hacked") is None


def test_what_slips_in_as_markup_does_not_run(show, open_page):
    page = show()
    for code in ("document.body.innerHTML = '<img src=x onerror=1>'",
                 "document.createElement('p').setAttribute('onclick', '1')",
                 "document.createElement('script').src = 'http://evil.example/x'"):
        with pytest.raises(sync_api.Error, match="'Trusted"):
            page.evaluate(f"() => {{ {code} }}")
    page.evaluate("() => { document.body.append(Object.assign(new Image(), {src: 'http://evil.example/x'})) }")
    open_page.refused("http://evil.example")


RENDERED = {  # a text, the elements that are made of it, and what is read
    "**bold** and `code`": ("strong, code", "bold and code"),
    "1. one\n2. two\n\n- [x] done": ("ol, ul, li, li, li", "one"),
    "| a | b |\n|---|--:|\n| 1 | 2 |": ("table", "1"),
    "```python\nif x < 2:\n    go()\n```": ("pre", "if x < 2:\n    go()"),
    "so $x^2$ and \\(y\\)": ("math, math", "so"), "so\n\\[\n\\boxed{7}\n- z\n\\]\nthen": ("math", "7"),
    "\\begin{align}\na &= b\n\\end{align}": ("math", "="), "bad \\(\\frac{\\)": ("", r"bad \(\frac{\)"),
    "It costs $5 or $10, or $5-$7": ("", "It costs $5 or $10, or $5-$7"), "2*3*4 ~5~": ("", "2*3*4 ~5~"),
    "[1]: http://evil.example/hidden": ("", "[1]: http://evil.example/hidden"),
    "[text](http://evil.example/a)": ("", "text (http://evil.example/a)"),
    "![alt](http://evil.example/b.png)": ("", "[image alt: http://evil.example/b.png]"),
    "<!-- hidden -->": ("", "<!-- hidden -->"), "> " * 5000: ("", "> > >")}


def test_what_a_plugin_tagged_is_marked_and_other_tags_stay_text(kit, look):
    text = "He says: <true>it **was** here</true> and <false>there</false>, <b>so</b> <true>open"
    notes = {"mine": {"marks": {"true": "right", "false": "wrong", "b": "odd"}}}
    said = kit.debate("c", "q", keys=(("A",),), text=text, notes=notes)
    sample = replace(said.sample, context=("The story.",), hidden_from={"context": ("judge",)})
    page = look("#/debate/s/c/0/q", replace(said, sample=sample), calls=False)
    marked = page.locator("#m0 .text mark")
    expect(marked).to_have_count(2)
    assert marked.evaluate_all("all => all.map(m => [m.className, m.title])") == [
        ["tag right", "true"], ["tag wrong", "false"]]
    assert marked.first.locator("strong").inner_text() == "was"
    assert "<b>so</b> <true>open" in page.locator("#m0 .text").first.inner_text()
    assert page.get_by_text("1 passage, not shown to judge").is_visible()


def test_markdown_and_formulas_are_rendered_and_shown_as_written_on_a_click(kit, look):
    plain = kit.debate("c", "q", keys=(("A",) * len(RENDERED),))
    said = [replace(m, content=text) for m, text in zip(plain.messages, RENDERED, strict=True)]
    page = look("#/debate/s/c/0/q", replace(plain, messages=said), calls=False)
    expect(page.locator(".card")).to_have_count(len(RENDERED))
    for i, (text, (elements, shown)) in enumerate(RENDERED.items()):
        body = page.locator(f"#m{i} .text").first
        made = body.evaluate("b => [...b.querySelectorAll('strong, code, ol, ul, li, table, pre, math, a, img')]"
                             ".filter(e => !e.closest('pre') || e.localName === 'pre').map(e => e.localName)")
        assert sorted(made) == sorted(filter(None, elements.split(", "))), text
        assert shown in body.inner_text(), text
    page.get_by_role("button", name="As written").click()
    expect(page.locator("#m0 .text")).to_have_text("**bold** and `code`")


def test_a_long_message_shows_its_beginning_and_its_end_until_all_are_expanded(kit, look):
    page = look("#/debate/s/c/0/q", kit.debate("c", "q", text=f"It begins.\n{'word ' * 6000}\nAnswer: {{key}}"),
                calls=False)
    for part in ("It begins.", "Answer: A"):
        expect(page.locator("#m0").get_by_text(part)).to_be_in_viewport()
    page.get_by_role("button", name="Expand all").click()
    expect(page.locator(".card .folded")).to_have_count(0)


def test_ten_megabytes_are_read_in_parts(kit, look):
    page = look("#/debate/s/c/0/q", kit.debate("c", "q", text="word " * 2_000_000, keys=(("A",),)), calls=False)
    page.get_by_role("button", name="all of it").click()
    page.get_by_role("button", name="more: 9,980,000 characters are left").click()
    expect(page.get_by_role("button", name="more: 9,780,000 characters are left")).to_be_visible()


def test_an_export_of_a_sample_opens_on_it(folder, tmp_path, open_page):
    export.export(studies.open_studies([folder]), tmp_path / "one.html", export.Part(samples=["corrected"]))
    expect(open_page((tmp_path / "one.html").as_uri()).locator("h1")).to_have_text("corrected")


# How it looks

def test_no_page_is_wider_than_the_window(show):
    page = show()
    for name, hash in PAGES.items():
        go(page, hash)
        expect(page.locator("main h1")).to_be_visible()
        for width in (320, 768, 2560):
            page.set_viewport_size({"width": width, "height": 800})
            assert page.evaluate("() => document.documentElement.scrollWidth - innerWidth") <= 0, (name, width)


def test_long_names_that_differ_at_their_end_are_told_apart_and_short_times_are_not_nothing(show):
    names, times = show().evaluate("""async () => {
      const { brief, duration } = await import('./app/format.js');
      return [[0, 4].map((x) => brief(`styles=debater(${'competence=0.6, '.repeat(9)}conformity=${x})`)),
              [0, 0.004, 0.5, 30].map(duration)];
    }""")
    assert [(name[-13:], len(name)) for name in names] == [("conformity=0)", 40), ("conformity=4)", 40)]
    assert times == ["0 ms", "4 ms", "0.5 s", "30 s"]


def test_scores_are_rounded_as_python_rounds(show):
    scores = [k / n for n in (3, 16, 32, 80, 160, 400, 2000) for k in range(n + 1)]
    shown = show().evaluate("""async (scores) => {
      const { rounded } = await import('./app/format.js');
      return scores.flatMap((x) => [2, 3, 4].map((digits) => rounded(x, digits)));
    }""", scores)
    assert shown == [f"{x:.{digits}f}" for x in scores for digits in (2, 3, 4)]


@pytest.mark.parametrize(("looks", "names"), [
    ({"color_scheme": "light"}, PAGES), ({"color_scheme": "dark"}, ("cell", "debate")),
    ({"forced_colors": "active"}, ("debate",)), ({"viewport": {"width": 320, "height": 700}}, ("study", "debate"))],
    ids=["light", "dark", "forced colours", "narrow"])
def test_axe_finds_nothing_serious(show, looks, names):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python has axe-core")
    page = show(**looks)

    def serious():
        found = axe.Axe().run(page).response["violations"]
        return [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("serious", "critical")]

    for name in names:
        go(page, PAGES[name])
        expect(page.locator("main h1")).to_be_visible()
        page.wait_for_timeout(200)
        assert not serious(), name
        if name == "debate":
            page.get_by_role("button", name="vote (3)").click()
            expect(page.get_by_role("dialog")).to_contain_text("prompt of vote 2")
            assert not serious(), "prompts"
            page.keyboard.press("Escape")


def test_a_stranger_reads_how_cells_differ_and_a_long_name_breaks_at_its_slashes(kit, tmp_path, look):
    settings = {"dataset": {"use": "files.table", "path": "/home/someone/questions.jsonl"},
                "debate.models": ["small", "large"], "debate.agents": 3}
    folder = kit.write(tmp_path / "s", [kit.debate("near", "papers/jurisprudence/test/25")])
    page = look("", folder=with_settings(folder, {"near": settings}))
    page.set_viewport_size({"width": 320, "height": 700})
    expect(page.locator(".cells tbody th")).to_contain_text(
        "dataset = files.table (path=questions.jsonl), debate.models = small, large, debate.agents = 3")
    go(page, "#/debate/s/near/0/papers%2Fjurisprudence%2Ftest%2F25")
    expect(page.locator("h1")).to_have_text("papers/jurisprudence/test/25")
    assert page.locator("h1 wbr").count() == 3


def test_a_debate_that_goes_on_is_not_said_to_have_made_no_calls(kit, tmp_path, look):
    folder = kit.write(tmp_path / "s", [], status=None, planned=2)
    result = kit.debate("plain", "open", keys=(("A", "B"),))

    async def begin():
        store, id = open_recorder(folder), DebateId("plain", 0, "open")
        store.start_debate(id, result.sample, result.references)
        store.keep_agents(id, result.agents)
        for message in result.messages:
            store.keep_message(id, message)
        store.close()

    kit.here(begin())
    page = look("#/debate/s/plain/0/open", folder=folder)
    expect(page.locator(".about")).to_contain_text("added up when a debate ends")
    expect(page.locator(".story")).to_contain_text("No agent has changed its mind so far.")
    expect(page.locator(".card")).to_have_count(2)
