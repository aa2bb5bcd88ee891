"""Ways to authenticate that a machine offers, and the variables that carry the chosen one.

A key from the environment comes first. A login of the CLI is used only as a copy without its refresh token, which the
provider can neither rotate nor lose for the user. Source: the contract, Reviewer isolation and auth.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from firsthand.files import FileRefusedError, read_path
from firsthand.review.interface import DEFAULT_TIMEOUT_MS, AuthLeg, Host, Incapable, ReviewError

CREDENTIALS: Final = ".credentials.json"
DUMMY_KEY: Final = "no-key-is-needed-on-loopback"
"""For loopback endpoints: the CLI asks for some key, and a real one must not be at hand."""

_KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
_BASE: Final = "ANTHROPIC_BASE_URL"
_VENDOR: Final = "api.anthropic.com:443"
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_LIMIT_BYTES: Final = 1024 * 1024
_KEPT: Final = ("accessToken", "expiresAt", "scopes", "subscriptionType", "rateLimitTier")

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Login:
    """The host's login of the CLI, without its refresh token."""

    path: Path
    fields: Mapping[str, Any]
    expires_s: float

    def copy(self) -> bytes:
        """What the private copy holds."""
        return json.dumps({"claudeAiOauth": dict(self.fields)}).encode()


def legs(host: Host, clock: Clock = time.time) -> tuple[AuthLeg, ...] | Incapable:
    """All legs, the preferred first; `provider-config-unreadable` for a login that is there and can't be read."""
    address = _address(host.environment.get(_BASE, ""))
    found = [
        AuthLeg(
            auth="provider-env",
            usable=bool(address),
            detail=f"{name} of the environment" if address else f"{_BASE} is no http or https address",
            address=address,
        )
        for name in _present(host)[:1]
    ]
    login = read_login(host)
    if isinstance(login, Incapable):
        return login
    if login is not None:
        found.append(_login_leg(login, host, clock))
    return tuple(found)


def read_login(host: Host) -> Login | Incapable | None:
    """The host's login; None where there is none. On macOS the CLI keeps it in the keychain, which is left alone."""
    folder = host.environment.get("CLAUDE_CONFIG_DIR") or (str(host.home / ".claude") if host.home else "")
    if not folder:
        return None
    path = Path(folder) / CREDENTIALS
    try:
        content = read_path(path, _LIMIT_BYTES)
    except FileRefusedError as error:
        return _unreadable(path, str(error.reason))
    if content is None:
        return None
    try:
        whole = json.loads(content.data)
        fields = whole["claudeAiOauth"]
        login = Login(path, {name: fields[name] for name in _KEPT if name in fields}, float(fields["expiresAt"]) / 1000)
        if not isinstance(fields["accessToken"], str) or not fields["accessToken"]:
            return _unreadable(path, "it holds no access token")
    except (ValueError, KeyError, TypeError, RecursionError):
        return _unreadable(path, "it is not of a known form")
    return login


def variables(host: Host, leg: AuthLeg | None) -> dict[str, str]:
    """What the CLI's environment gets for this leg: one base URL and at most one credential.

    Args:
        host: where the secret is.
        leg: as chosen; None for a loopback endpoint that needs no key.

    Raises:
        ReviewError: `no-auth`: the leg is not there (any more), or without a leg the base URL is not on loopback.
    """
    base = host.environment.get(_BASE, "")
    if leg is None:
        if not is_loopback(base):
            raise _no_auth(f"without a key or a login only a loopback endpoint can be used, and {_BASE} names none")
        return {_BASE: base, "ANTHROPIC_API_KEY": DUMMY_KEY}
    if leg.address != _address(base):
        raise _no_auth(f"{_BASE} does not name {leg.address} any more")
    shown = {_BASE: base} if base else {}
    if leg.auth == "oauth-copy":
        return shown
    present = _present(host)
    if not present:
        raise _no_auth("the key is not in the environment any more")
    return {**shown, present[0]: host.environment[present[0]]}


def login_for(host: Host, remaining_s: float, clock: Clock = time.time) -> Login:
    """The login that a copy is made of.

    Raises:
        ReviewError: `no-auth`: there is none, or it expires before the budget ends.
    """
    login = read_login(host)
    if isinstance(login, Incapable):
        raise ReviewError(login.reason, next_step=login.next_step, code=login.code)
    if login is None:
        raise _no_auth("the login of the Claude CLI is gone")
    if login.expires_s < clock() + remaining_s:
        raise _no_auth("the login expires before the budget ends", "start `claude` once, so that it renews the login")
    return login


def is_loopback(url: str) -> bool:
    """Whether an http or https URL names this machine by a loopback address."""
    parts = _parts(url)
    return parts is not None and parts[0] in _LOOPBACK


def _login_leg(login: Login, host: Host, clock: Clock) -> AuthLeg:
    base = host.environment.get(_BASE, "")
    if base and not is_loopback(base):
        detail = f"a login is never sent to the host that {_BASE} names"
        return AuthLeg("oauth-copy", usable=False, detail=detail, address=_address(base))
    enough = login.expires_s >= clock() + DEFAULT_TIMEOUT_MS / 1000
    detail = f"a copy of {login.path}" if enough else f"{login.path} expires before a review could end"
    return AuthLeg("oauth-copy", usable=enough, detail=detail, address=_address(base))


def _present(host: Host) -> list[str]:
    return [name for name in _KEYS if host.environment.get(name)]


def _address(base: str) -> str:
    if not base:
        return _VENDOR
    parts = _parts(base)
    return "" if parts is None else f"{parts[0]}:{parts[1]}"


def _parts(url: str) -> tuple[str, int] | None:
    try:
        split = urlsplit(url)
        port = split.port
    except ValueError:
        return None
    if split.scheme not in ("http", "https") or not split.hostname or split.username is not None:
        return None
    return split.hostname, port or (443 if split.scheme == "https" else 80)


def _unreadable(path: Path, reason: str) -> Incapable:
    return Incapable(
        f"the Claude CLI's login at {path} can't be read: {reason}",
        "repair or remove that file",
        "provider-config-unreadable",
    )


def _no_auth(message: str, next_step: str = "set ANTHROPIC_API_KEY, or log in with `claude`") -> ReviewError:
    return ReviewError(message, next_step=next_step, code="no-auth")
