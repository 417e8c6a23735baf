"""Studies in which components saw the references are marked on every page; a budget is nothing that cells differ in."""

import json

import pytest
from tests_support import chromium

sync_api = pytest.importorskip("playwright.sync_api", reason="the browser is driven by playwright")
SETTINGS = {cell: {"settings": {"debate.paradigm": cell, "debate.agents": n, "match.cell": cell, "match.by": "calls"}}
            for n, cell in enumerate(("plain", "other way"))}


@pytest.fixture
def marked(kit, tmp_path):
    """Two cells of an oracle's study, each matched to a cell."""
    folder = kit.write(tmp_path / "marked", [kit.debate(cell, "q1") for cell in SETTINGS])

    kit.keep(folder, "identity", {"oracle": True, "cells": {}})
    (folder / "summary.json").write_text(json.dumps({"cells": [{"cell": c, **s} for c, s in SETTINGS.items()]}))
    return folder


def test_every_page_of_an_oracles_study_says_so_and_cells_are_chosen_by_name(kit, marked):
    with kit.serving_here(marked) as address, chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(40_000)
        for place in ("#/study/0", "#/cell/0/plain", "#/debate/0/plain/0/q1", "#/cell/0/"):
            page.goto(f"{address}{place}")
            page.get_by_text("components saw the references").wait_for()
        names = [text.split()[0] for text in page.locator("form.filters .bar label").all_inner_texts()]
        assert names.count("cell") == 1
        by_name = page.locator("form.filters select", has=page.locator("option", has_text="other way")).last
        by_name.select_option("other way")
        page.wait_for_url("**other*")
        page.get_by_text("1 debate").first.wait_for()
