"""Telling observers, each by itself: none can stop the work, another observer, or be lost in silence."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pluggy

from firsthand.errors import PluginError
from firsthand.plugins.hooks import PROJECT, ObserverHooks
from firsthand.plugins.loading import load
from firsthand.plugins.plugin import OBSERVERS, Plugin, describe_exception
from firsthand.records import CheckRun, MutationRun, RunPurpose, ToolCall


@dataclass(frozen=True, slots=True)
class ObserverFailure:
    """An observer that failed at one hook."""

    observer: str
    owner: str
    """Distribution and version."""
    hook: str
    """Empty when it could not even be loaded."""
    reason: str
    """Type and message of its first exception there, one line of at most 500 characters."""
    count: int
    """How often it failed there."""


class Observers:
    """All observers of one process, told in the order in which they were added.

    Each observer has a plug-in registry of its own: with a common one, the first that raises would keep the rest from
    being told. A failure (an exception, `SystemExit` included, or a returned value) is kept as data and changes
    nothing else; `KeyboardInterrupt` is the user's and passes.
    """

    def __init__(self) -> None:
        self._observers: list[tuple[str, str, pluggy.PluginManager]] = []
        self._failures: dict[tuple[str, str, str], ObserverFailure] = {}
        # Lanes and the tool server report from their own threads; an observer is promised one call at a time. It may
        # be re-entered by an observer that itself causes an event.
        self._lock = threading.RLock()

    @property
    def failures(self) -> tuple[ObserverFailure, ...]:
        """What went wrong so far, one entry for each observer and hook."""
        with self._lock:
            return tuple(self._failures.values())

    def add(self, observer: object, *, name: str, owner: str) -> None:
        """Register one observer.

        Args:
            observer: an object with methods marked by `hookimpl`.
            name: as failures name it.
            owner: its distribution and version.

        Raises:
            PluginError: it marks no method, misspells a hook or an argument, or wants to wrap the others.
        """
        registry = pluggy.PluginManager(PROJECT)
        registry.add_hookspecs(ObserverHooks)
        try:
            registry.register(observer, name)
            implementations = [
                implementation
                for caller in registry.get_hookcallers(observer) or ()
                for implementation in caller.get_hookimpls()
            ]
            # A wrapper decides over the others, and an optional hook is one whose misspelling nobody would notice.
            for implementation in implementations:
                if implementation.hookwrapper or implementation.wrapper:
                    raise _refused(
                        name, owner, f"{implementation.function.__name__} is a wrapper; observers only watch"
                    )
                if implementation.optionalhook:
                    raise _refused(name, owner, f"{implementation.function.__name__} is marked optional")
            registry.check_pending()
        except (pluggy.PluginValidationError, ValueError, TypeError) as error:
            raise _refused(name, owner, describe_exception(error)) from error
        if not implementations:
            raise _refused(name, owner, "it marks no method with firsthand.plugins.hookimpl, so it would hear nothing")
        with self._lock:
            self._observers.append((name, owner, registry))

    def add_installed(self, plugins: Iterable[Plugin]) -> None:
        """Load and register observers that are installed; one that fails is recorded, and the others go on."""
        for plugin in plugins:
            try:
                self.add(load(plugin), name=plugin.name, owner=plugin.owner)
            except PluginError as error:
                self._record(plugin.name, plugin.owner, "", error.message)

    def check_started(self, check_id: str, purpose: RunPurpose, lane: int) -> None:
        """Tell all; see `ObserverHooks`."""
        self._tell("check_started", lambda hook: hook.check_started(check_id=check_id, purpose=purpose, lane=lane))

    def check_finished(self, run: CheckRun) -> None:
        """Tell all; see `ObserverHooks`."""
        self._tell("check_finished", lambda hook: hook.check_finished(run=run))

    def mutation_finished(self, run: MutationRun) -> None:
        """Tell all; see `ObserverHooks`."""
        self._tell("mutation_finished", lambda hook: hook.mutation_finished(run=run))

    def tool_called(self, call: ToolCall) -> None:
        """Tell all; see `ObserverHooks`."""
        self._tell("tool_called", lambda hook: hook.tool_called(call=call))

    def evidence_sealed(self, path: str, sha256: str) -> None:
        """Tell all; see `ObserverHooks`."""
        self._tell("evidence_sealed", lambda hook: hook.evidence_sealed(path=path, sha256=sha256))

    def round_ended(self, run_id: str, stage: str, round_number: int, status: str, code: str) -> None:
        """Tell all; see `ObserverHooks`."""
        self._tell(
            "round_ended",
            lambda hook: hook.round_ended(
                run_id=run_id, stage=stage, round_number=round_number, status=status, code=code
            ),
        )

    def _tell(self, hook: str, call: Callable[[pluggy.HookRelay], list[object]]) -> None:
        with self._lock:
            for name, owner, registry in self._observers:
                try:
                    returned = call(registry.hook)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # noqa: BLE001 - isolation is the point; it is recorded
                    self._record(name, owner, hook, describe_exception(error))
                    continue
                if returned:
                    for value in returned:
                        if inspect.iscoroutine(value):
                            value.close()
                    kind = type(returned[0]).__name__
                    self._record(name, owner, hook, f"it returned a value ({kind}); observers return nothing")

    def _record(self, name: str, owner: str, hook: str, reason: str) -> None:
        with self._lock:
            key = (name, owner, hook)
            earlier = self._failures.get(key)
            self._failures[key] = (
                ObserverFailure(name, owner, hook, reason, 1)
                if earlier is None
                else replace(earlier, count=earlier.count + 1)
            )


def _refused(name: str, owner: str, reason: str) -> PluginError:
    return PluginError(
        f"the observer {name!r} of {owner} can't be used: {reason}",
        where=f"{OBSERVERS}: {name}",
        next_step="correct the observer; docs/plugins/README.md names the hooks and their arguments",
    )
