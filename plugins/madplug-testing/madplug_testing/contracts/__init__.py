"""The contracts of components, as tests to inherit: one class per kind.

    from madplug_testing.contracts import DecisionContract
    from madplug_hello import Firmest

    class TestFirmest(DecisionContract):
        component = Firmest
        options = {"least": 0.5}

Every inherited test says in its docstring what to do if it fails. A subclass must not replace any of
them; add your own tests. If a component needs more than the plainest debate (roles, a service, a table of data),
say so:

    around = {"agents": 4, "personas": [Judge()], "services": {"index": Index()}}     # arguments of `play`
    sample = Sample("q1", "Which one floats?", choices=("a stone", "a cork"))
    def reply(self, request): return "C"                                             # what the model says
"""

from __future__ import annotations

from madplug_testing.contracts.base import ComponentContract, contract_tests
from madplug_testing.contracts.debates import (
    CastingContract,
    PersonaContract,
    StyleContract,
    TurnOrderContract,
    VisibilityContract,
)
from madplug_testing.contracts.endings import DecisionContract, ExtensionContract, MetricContract, PhaseContract
from madplug_testing.contracts.imports import HEAVY, heavy_imports
from madplug_testing.contracts.supplies import (
    AnswerContract,
    DatasetContract,
    ExecutorContract,
    ModelContract,
    ObserverContract,
    ParadigmContract,
    ServiceContract,
)

CONTRACTS: dict[str, type[ComponentContract]] = {
    "model": ModelContract, "service": ServiceContract, "dataset": DatasetContract, "answers": AnswerContract,
    "personas": PersonaContract, "casting": CastingContract, "style": StyleContract, "turns": TurnOrderContract,
    "visibility": VisibilityContract, "decision": DecisionContract, "phase": PhaseContract,
    "metric": MetricContract, "extension": ExtensionContract, "paradigm": ParadigmContract,
    "executor": ExecutorContract, "observer": ObserverContract,
}
"""The contract of each kind of component."""
__all__ = [
    "CONTRACTS", "HEAVY", "AnswerContract", "CastingContract", "ComponentContract", "DatasetContract",
    "DecisionContract", "ExecutorContract", "ExtensionContract", "MetricContract", "ModelContract",
    "ObserverContract",
    "ParadigmContract", "PersonaContract", "PhaseContract", "ServiceContract", "StyleContract", "TurnOrderContract",
    "VisibilityContract", "contract_tests", "heavy_imports",
]
