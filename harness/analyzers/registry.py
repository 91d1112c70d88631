"""The one ordered list of analyzers. Adding one is a class and a line here."""

from __future__ import annotations

from harness.analyzers.base import Analyzer, Rule, UnavailableAnalyzer
from harness.analyzers.behavior.annotations import AnnotationsAnalyzer
from harness.analyzers.behavior.canaries import CanariesAnalyzer
from harness.analyzers.behavior.drift import DriftAnalyzer
from harness.analyzers.behavior.egress import EgressAnalyzer
from harness.analyzers.behavior.evasion import EvasionAnalyzer
from harness.analyzers.behavior.execution import ExecAnalyzer
from harness.analyzers.behavior.files import FilesAnalyzer
from harness.analyzers.behavior.flood import FloodAnalyzer
from harness.analyzers.behavior.installing import InstallAnalyzer
from harness.analyzers.behavior.network import NetworkAnalyzer
from harness.analyzers.behavior.privilege import PrivilegeAnalyzer
from harness.analyzers.definitions.analyzer import DefinitionsAnalyzer
from harness.analyzers.messages.analyzer import ProtocolAnalyzer
from harness.analyzers.messages.probes import ProbesAnalyzer
from harness.analyzers.messages.requests import RequestsAnalyzer
from harness.analyzers.messages.results import ResultsAnalyzer

ANALYZERS: tuple[Analyzer, ...] = (
    ProtocolAnalyzer(),
    ProbesAnalyzer(),
    ResultsAnalyzer(),
    RequestsAnalyzer(),
    DriftAnalyzer(),
    DefinitionsAnalyzer(),
    ExecAnalyzer(),
    FilesAnalyzer(),
    InstallAnalyzer(),
    PrivilegeAnalyzer(),
    EvasionAnalyzer(),
    FloodAnalyzer(),
    NetworkAnalyzer(),
    EgressAnalyzer(),
    CanariesAnalyzer(),
    AnnotationsAnalyzer(),
    UnavailableAnalyzer("yara", "YARA rules over declarations and files", "the YARA library is not installed"),
    UnavailableAnalyzer("model", "declarations judged by a language model", "no model is configured"),
)


def names() -> tuple[str, ...]:
    """The names of all analyzers, in their default order."""
    return tuple(analyzer.name for analyzer in ANALYZERS)


def find(name: str) -> Analyzer | None:
    """The analyzer of that name, or None."""
    return next((analyzer for analyzer in ANALYZERS if analyzer.name == name), None)


def rules() -> tuple[Rule, ...]:
    """Every rule of every analyzer, in order; ids are unique."""
    return tuple(rule for analyzer in ANALYZERS for rule in analyzer.rules)
