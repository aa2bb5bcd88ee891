"""Keys and logins: what is found, what is refused, and what reaches the CLI and nothing else."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from firsthand.review.interface import AuthLeg, Host, Incapable, ReviewError
from firsthand_claude.authentication import is_loopback, legs, login_for, variables
from firsthand_claude.scripted import ScriptedEndpoint
from providers.claude.driving import ANSWER, Driver, scenario

NOW = 1_800_000_000.0
LOGIN = {
    "accessToken": "access-CANARY",
    "refreshToken": "refresh-CANARY",
    "expiresAt": int((NOW + 7200) * 1000),
    "scopes": ["user:inference"],
    "subscriptionType": "max",
}


def clock() -> float:
    return NOW


def home_with(folder: Path, content: Any) -> Path:
    place = folder / ".claude"
    place.mkdir(parents=True)
    (place / ".credentials.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return folder


def found(home: Path | None, **environment: str) -> list[AuthLeg]:
    result = legs(Host(environment=environment, home=home), clock)
    assert not isinstance(result, Incapable), result
    return list(result)


def test_nothing_is_no_leg(tmp_path: Path) -> None:
    assert found(tmp_path) == []
    assert found(None) == []


@pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"])
def test_a_key_is_a_leg_and_stays_out_of_it(tmp_path: Path, name: str) -> None:
    (leg,) = found(tmp_path, **{name: "SECRET"})
    assert (leg.auth, leg.usable, leg.address) == ("provider-env", True, "api.anthropic.com:443")
    assert "SECRET" not in repr(leg)
    assert variables(Host(environment={name: "SECRET"}, home=None), leg) == {name: "SECRET"}


def test_only_one_key_is_passed_on(tmp_path: Path) -> None:
    host = Host(environment={"ANTHROPIC_AUTH_TOKEN": "b", "ANTHROPIC_API_KEY": "a", "AWS_SECRET": "c"}, home=None)
    (leg,) = found(None, **host.environment)
    assert variables(host, leg) == {"ANTHROPIC_API_KEY": "a"}


@pytest.mark.parametrize(
    ("base", "address"),
    [
        ("https://gateway.example", "gateway.example:443"),
        ("http://127.0.0.1:8080/v1", "127.0.0.1:8080"),
        ("ftp://gateway.example", ""),
        ("https://user:word@gateway.example", ""),
        ("http://gateway.example:99999", ""),
        ("nonsense", ""),
    ],
)
def test_the_address_is_the_base_urls(base: str, address: str) -> None:
    (leg,) = found(None, ANTHROPIC_API_KEY="a", ANTHROPIC_BASE_URL=base)
    assert leg.address == address
    assert leg.usable == bool(address)


def test_a_login_is_a_leg_after_a_key(tmp_path: Path) -> None:
    home = home_with(tmp_path, {"claudeAiOauth": LOGIN})
    (key, login) = found(home, ANTHROPIC_API_KEY="a")
    assert (key.auth, login.auth, login.usable) == ("provider-env", "oauth-copy", True)
    assert "CANARY" not in repr(login)


def test_a_login_that_ends_too_early_is_not_usable(tmp_path: Path) -> None:
    soon = {**LOGIN, "expiresAt": int((NOW + 60) * 1000)}
    home = home_with(tmp_path, {"claudeAiOauth": soon})
    (leg,) = found(home)
    assert not leg.usable
    with pytest.raises(ReviewError) as caught:
        login_for(Host(environment={}, home=home), 120, clock)
    assert caught.value.code == "no-auth"
    assert login_for(Host(environment={}, home=home), 30, clock).expires_s == NOW + 60


def test_a_login_is_never_sent_to_a_foreign_gateway(tmp_path: Path) -> None:
    home = home_with(tmp_path, {"claudeAiOauth": LOGIN})
    (leg,) = found(home, ANTHROPIC_BASE_URL="https://gateway.example")
    assert not leg.usable
    (leg,) = found(home, ANTHROPIC_BASE_URL="http://localhost:1")
    assert leg.usable


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "{}",
        '{"claudeAiOauth": {}}',
        '{"claudeAiOauth": {"accessToken": "", "expiresAt": 1}}',
        "[" * 9999,
    ],
)
def test_a_login_that_cant_be_read_is_refused_by_code(tmp_path: Path, content: str) -> None:
    result = legs(Host(environment={}, home=home_with(tmp_path, content)), clock)
    assert isinstance(result, Incapable)
    assert result.code == "provider-config-unreadable"


def test_a_login_that_is_a_link_is_refused(tmp_path: Path) -> None:
    home = home_with(tmp_path / "real", {"claudeAiOauth": LOGIN})
    (tmp_path / "other" / ".claude").mkdir(parents=True)
    (tmp_path / "other" / ".claude" / ".credentials.json").symlink_to(home / ".claude" / ".credentials.json")
    result = legs(Host(environment={}, home=tmp_path / "other"), clock)
    assert isinstance(result, Incapable)
    assert result.code == "provider-config-unreadable"


def test_without_a_leg_only_loopback_will_do() -> None:
    for base in ("", "https://api.anthropic.com", "http://127.0.0.1.example", "http://2130706433"):
        with pytest.raises(ReviewError) as caught:
            variables(Host(environment={"ANTHROPIC_BASE_URL": base}, home=None), None)
        assert caught.value.code == "no-auth"
    host = Host(environment={"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_API_KEY": "REAL"}, home=None)
    assert "REAL" not in variables(host, None).values()
    assert is_loopback("http://[::1]:9")


def test_a_leg_that_has_changed_is_refused() -> None:
    leg = AuthLeg("provider-env", usable=True, detail="", address="api.anthropic.com:443")
    for environment in ({}, {"ANTHROPIC_API_KEY": "a", "ANTHROPIC_BASE_URL": "https://elsewhere.example"}):
        with pytest.raises(ReviewError) as caught:
            variables(Host(environment=environment, home=None), leg)
        assert caught.value.code == "no-auth"


def test_a_copied_login_works_without_its_refresh_token_and_the_original_is_untouched(driver: Driver) -> None:
    fresh = {**LOGIN, "expiresAt": 4_000_000_000_000}
    home = home_with(driver.folder / "login-home", {"claudeAiOauth": fresh})
    original = home / ".claude" / ".credentials.json"
    before = (original.read_bytes(), original.stat().st_mtime_ns)
    with ScriptedEndpoint(scenario({"answer": ANSWER})) as model:
        host = Host(environment={"ANTHROPIC_BASE_URL": model.url}, home=home, program=driver.program)
        capability = driver.provider.capability(host)
        (leg,) = capability.auth  # type: ignore[union-attr]
        dispatch = driver.dispatch(driver.diagnosis(None), host, leg)
        record = driver.provider.review(dispatch, None, driver.launcher(dispatch.private))
        sent = [exchange.headers for exchange in model.exchanges]
    assert record.failure is None, record.failure
    assert [headers.get("authorization") for headers in sent] == ["Bearer access-CANARY"]
    assert (original.read_bytes(), original.stat().st_mtime_ns) == before
    copies = [path for path in dispatch.private.rglob("*") if path.is_file() and b"CANARY" in path.read_bytes()]
    assert [path.name for path in copies] == [".credentials.json"]
    assert b"refresh-CANARY" not in copies[0].read_bytes()
    assert stat.S_IMODE(os.stat(copies[0]).st_mode) == 0o600
    driver.session.close()
    assert not copies[0].exists()


def test_a_key_reaches_the_cli_alone(driver: Driver) -> None:
    with ScriptedEndpoint(scenario({"answer": ANSWER})) as model:
        host = driver.host({"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "KEY-CANARY"})
        (leg,) = driver.provider.capability(host).auth  # type: ignore[union-attr]
        endpoint = driver.server()
        dispatch = driver.dispatch(driver.diagnosis(endpoint), host, leg)
        record = driver.provider.review(dispatch, endpoint, driver.launcher(dispatch.private))
        assert [exchange.headers["x-api-key"] for exchange in model.exchanges] == ["KEY-CANARY"]
    assert record.failure is None, record.failure
    assert "KEY-CANARY" not in json.dumps(driver.starts)
    written = [path for path in dispatch.private.rglob("*") if path.is_file() and b"KEY-CANARY" in path.read_bytes()]
    assert written == []
