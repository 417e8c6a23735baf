"""What holds of one plugin that is installed with nothing but what it declares; `alone.py` runs this for each.

Its wheel is complete and can be imported, it loads without a problem, and each of its components keeps the part of its
contract that takes no other plugin. Presets name only what is installed.
"""

from __future__ import annotations

import os
import pkgutil
import re
from importlib import import_module
from importlib.metadata import requires
from pathlib import Path

import pytest

from madplug.cli.program import main
from madplug.options import NESTED
from madplug.registry.installed import Registry
from madplug_testing.contracts import CONTRACTS, ComponentContract, ParadigmContract, contract_tests, heavy_imports

DISTRIBUTION = os.environ.get("DISTRIBUTION", "madplug-testing")
MODULE = DISTRIBUTION.replace("-", "_")
[SOURCE] = Path(__file__).resolve().parents[2].glob(f"*/{DISTRIBUTION}/{MODULE}")
OFFERS = [offer for offer in Registry().offers() if offer.distribution == DISTRIBUTION]
CASES = [(offer, test) for offer in OFFERS
         for test in contract_tests(ParadigmContract if offer.kind == "paradigm" else ComponentContract)]


def test_every_module_of_the_wheel_can_be_imported():
    """A module may take a package of an extra that is not installed here."""
    extras = [need for need in requires(DISTRIBUTION) or () if "extra ==" in need]
    optional = {re.split(r"[^\w-]", need)[0].replace("-", "_") for need in extras}
    for module in pkgutil.walk_packages(import_module(MODULE).__path__, f"{MODULE}."):
        try:
            import_module(module.name)
        except ModuleNotFoundError as error:
            if error.name.partition(".")[0] not in optional:
                raise


def test_the_wheel_has_every_file_of_the_package():
    here = Path(import_module(MODULE).__file__).parent
    assert "site-packages" in here.parts
    missing = [path for path in SOURCE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
               and not (here / path.relative_to(SOURCE)).is_file()]
    assert missing == []


def test_the_plugin_loads_without_a_problem():
    registry = Registry()
    registry.load_all()
    assert registry.problems == []
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0


@pytest.fixture(scope="module")
def imported_at_once():
    """One interpreter for all modules."""
    heavy_imports(sorted({offer.component.__module__ for offer in OFFERS}))


@pytest.mark.parametrize(("offer", "test"), CASES, ids=[f"{o.kind} {o.name} {t}" for o, t in CASES])
def test_a_component_keeps_what_it_can_keep_alone(offer, test, imported_at_once):
    made = test in ("test_its_options_can_be_written_down_and_read_back", "test_making_it_is_cheap")
    fields = offer.component.Options.model_fields.values()
    if made and any(field.is_required() or (NESTED in field.metadata and field.default) for field in fields):
        pytest.skip("it needs options")
    contract = type("Alone", (CONTRACTS.get(offer.kind, ComponentContract),), {"component": offer.component})
    getattr(contract(), test)()
