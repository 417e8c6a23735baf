"""Long and wide tables of the page, as a browser lays them out."""

import re
from contextlib import ExitStack

import pytest
from tests_support import chromium

from madplug_report.building import build
from madplug_report.page import page

PLACES = """() => {
  const wide = [...document.querySelectorAll(".wide")].sort((a, b) => b.scrollHeight - a.scrollHeight)[0];
  wide.scrollTop = 500; wide.scrollLeft = 60;
  const box = e => e.getBoundingClientRect(), all = box(wide);
  const name = box(wide.querySelector("tbody th"));
  return {head: box(wide.querySelector("thead")).top - all.top, left: name.left - all.left,
          name: name.width / all.width, high: all.height / innerHeight, page: document.body.scrollWidth / innerWidth};
}"""


@pytest.fixture
def shown(study):
    """The page of a study of these cells in a window."""
    with ExitStack() as stack:
        def shown(cells, samples, **more):
            text = page(build([study(cells, samples=samples)]), [])
            found = stack.enter_context(chromium()).new_page(**more)
            found.set_content(text)
            return found
        yield shown


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_names_and_headings_of_a_long_table_stay_in_sight(shown, kit, width):
    cells = [kit.Drawn(f"decision=rule{i},agents={i}") for i in range(60)]
    places = shown(cells, 2, viewport={"width": width, "height": 700}).evaluate(PLACES)
    assert max(abs(places["head"]), abs(places["left"])) < 2
    assert places["name"] < 0.6
    assert places["high"] < 0.9
    assert places["page"] <= 1


def test_a_heading_sorts_its_table_and_the_contents_lead_to_it(shown, kit):
    report = shown([kit.Drawn(f"agents={i}", skill=skill) for i, skill in ((3, 0.2), (5, 0.95), (9, 0.5))], 40)
    assert not report.locator("th button:empty").count()
    report.get_by_role("navigation").get_by_role("link", name="Cells", exact=True).click()
    table = report.locator("h2", has_text=re.compile("^Cells$")).locator("+ .wide table")
    found = []
    for _ in range(3):
        table.get_by_role("button", name="qa.accuracy").click()
        found.append([name.split("=")[-1] for name in table.locator("tbody th").all_inner_texts()])
    assert found == [["5", "9", "3"], ["3", "9", "5"], ["3", "5", "9"]]
