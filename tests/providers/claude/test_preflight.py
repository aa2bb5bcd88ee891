"""The preflight proves on the wire what a review will show, and refuses everything else."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from firsthand.review.answer import output_schema
from firsthand.review.interface import Diagnosis, Endpoint, ReviewError, ToolSchema
from firsthand.review.tools import schemas_digest, tool_schemas
from firsthand_claude.provider import ClaudeProvider
from firsthand_claude.scripted import Exchange
from firsthand_claude.wire import check_wire
from providers.claude.driving import SYSTEM_PROMPT, Driver

WIRE = ("StructuredOutput", "mcp__cm_review__mutate_check", "mcp__cm_review__read_file", "mcp__cm_review__run_check")


def test_it_binds_everything(driver: Driver) -> None:
    diagnosis = driver.preflight(driver.server())
    capability = driver.provider.capability(driver.host())
    assert diagnosis.tools == WIRE
    assert diagnosis.kind == "tools"
    assert diagnosis.tool_schemas_digest == schemas_digest(tool_schemas(), output_schema())
    assert diagnosis.program == capability.program  # type: ignore[union-attr]
    assert (diagnosis.model, diagnosis.effort, diagnosis.budget) == ("scripted-reviewer", "high", driver.budget)
    assert Diagnosis.model_validate_json(json.dumps(diagnosis.as_json())) == diagnosis


def test_without_tools_the_model_sees_the_answer_alone(driver: Driver) -> None:
    diagnosis = driver.preflight(None)
    assert diagnosis.tools == ("StructuredOutput",)
    assert diagnosis.kind == "tool-less"


def test_a_review_takes_the_diagnosis_of_a_real_preflight(driver: Driver) -> None:
    diagnosis = driver.preflight(driver.server())
    assert diagnosis.flag_set_digest == driver.diagnosis(driver.server()).flag_set_digest


def test_the_flag_set_is_one_for_every_auth_and_differs_for_another_set_up(driver: Driver) -> None:
    tools, bare = driver.preflight(driver.server()), driver.preflight(None)
    other = driver.preflight(driver.server(), effort="low")
    assert len({tools.flag_set_digest, bare.flag_set_digest, other.flag_set_digest}) == 3


def test_any_model_name_is_taken_since_none_is_asked(driver: Driver) -> None:
    assert driver.preflight(None, model="claude-some-model").model == "claude-some-model"


def test_the_hosts_keys_and_login_are_not_used(driver: Driver) -> None:
    request = driver.request(driver.server())
    environment = {"ANTHROPIC_API_KEY": "REAL-KEY", "ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
    (driver.folder / "user-home" / ".claude").mkdir(parents=True)
    (driver.folder / "user-home" / ".claude" / ".credentials.json").write_text("{")
    host = dataclasses.replace(request.host, environment=environment)
    request = dataclasses.replace(request, host=host)
    driver.provider.preflight(request, driver.launcher(request.private))
    written = [path for path in request.private.rglob("*") if path.is_file() and b"REAL-KEY" in path.read_bytes()]
    assert written == []


def test_a_server_that_is_not_there_is_no_diagnosis(driver: Driver) -> None:
    endpoint = dataclasses.replace(driver.server(), argv=("/bin/false",))
    with pytest.raises(ReviewError) as caught:
        driver.preflight(endpoint)
    assert caught.value.code == "tool_preflight_missing"
    assert "tools-missing" in str(caught.value)


def test_a_server_with_other_tools_is_no_diagnosis(driver: Driver) -> None:
    endpoint = driver.server()
    for tools in (endpoint.tools[:2], (*endpoint.tools, ToolSchema("fourth", "x", {"type": "object"}))):
        with pytest.raises(ReviewError) as caught:
            driver.preflight(dataclasses.replace(endpoint, tools=tools))
        assert caught.value.code == "tool_preflight_missing"


def test_a_server_that_describes_its_tools_otherwise_is_no_diagnosis(driver: Driver) -> None:
    endpoint = driver.server()
    changed = dataclasses.replace(endpoint.tools[0], description="Read any file.")
    with pytest.raises(ReviewError, match="not what the host declares") as caught:
        driver.preflight(dataclasses.replace(endpoint, tools=(changed, *endpoint.tools[1:])))
    assert caught.value.code == "tool_preflight_missing"


@pytest.mark.parametrize("change", ["kind", "model", "effort", "program", "flags"])
def test_a_diagnosis_of_another_set_up_is_refused_before_anything_starts(driver: Driver, change: str) -> None:
    endpoint: Endpoint | None = driver.server()
    diagnosis = driver.diagnosis(endpoint)
    updates: dict[str, object] = {
        "kind": {"kind": "tool-less"},
        "model": {"model": "scripted-other"},
        "effort": {"effort": "low"},
        "program": {"program": diagnosis.program.model_copy(update={"sha256": "0" * 64})},
        "flags": {"flag_set_digest": "0" * 64},
    }
    diagnosis = diagnosis.model_copy(update=updates[change])  # type: ignore[arg-type]
    dispatch = driver.dispatch(diagnosis, driver.host({"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}))
    with pytest.raises(ReviewError) as caught:
        driver.provider.review(dispatch, endpoint, driver.launcher(dispatch.private))
    assert caught.value.code == "tool_preflight_missing"
    assert list(dispatch.private.iterdir()) == []
    assert driver.starts == []


def test_managed_settings_of_the_machine_are_refused_by_name(driver: Driver, tmp_path: Path) -> None:
    managed = tmp_path / "managed"
    managed.mkdir()
    provider = ClaudeProvider(managed=(managed,))
    assert provider.capability(driver.host()).program  # type: ignore[union-attr]
    (managed / "managed-settings.json").write_text("{}")
    found = provider.capability(driver.host())
    assert str(managed) in found.reason  # type: ignore[union-attr]
    request = driver.request(None)
    with pytest.raises(ReviewError, match=r"managed-settings\.json") as caught:
        provider.preflight(request, driver.launcher(request.private))
    assert caught.value.code == "review_verification_provider"
    dispatch = driver.dispatch(driver.diagnosis(None), driver.host())
    with pytest.raises(ReviewError, match=r"managed-settings\.json"):
        provider.review(dispatch, None, driver.launcher(dispatch.private))


def exchange(driver: Driver, **changes: object) -> Exchange:
    """What the wire shows in a good preflight, changed."""
    tools = [
        {"name": f"mcp__cm_review__{tool.name}", "description": tool.description, "input_schema": tool.input_schema}
        for tool in tool_schemas()
    ]
    answer = {"name": "StructuredOutput", "description": "answer", "input_schema": output_schema()}
    message = {
        "system": [{"type": "text", "text": SYSTEM_PROMPT}],
        "messages": [{"role": "user", "content": "the prompt"}],
        "tools": [answer, *tools],
        "output_config": {"effort": "high"},
        **changes,
    }
    return Exchange(0.0, "POST", "/v1/messages?beta=true", {}, json.dumps(message).encode(), 200, 0)


def test_the_wire_as_it_must_be_is_accepted(driver: Driver) -> None:
    names, digest = check_wire([exchange(driver)], driver.request(driver.server()), "the prompt")
    assert names == WIRE
    assert digest == schemas_digest(tool_schemas(), output_schema())


@pytest.mark.parametrize(
    "changes",
    [
        {"tools": []},
        {"tools": [{"name": "StructuredOutput", "input_schema": {}}, {"name": "Bash", "input_schema": {}}]},
        {"system": "Another system prompt."},
        {"system": [{"type": "text", "text": SYSTEM_PROMPT}, {"type": "text", "text": "x" * 5000}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "the prompt\nand a memory"}]}]},
        {"messages": [{"role": "user", "content": "the prompt"}, {"role": "user", "content": "the prompt"}]},
        {"messages": [{"role": "user", "content": ["the prompt", {"type": "image", "data": "x" * 5000}]}]},
        {"output_config": {"effort": "low"}},
        {"output_config": None},
    ],
)
def test_anything_else_on_the_wire_is_refused(driver: Driver, changes: dict[str, object]) -> None:
    with pytest.raises(ReviewError) as caught:
        check_wire([exchange(driver, **changes)], driver.request(driver.server()), "the prompt")
    assert caught.value.code == "tool_preflight_missing"


def test_a_request_of_another_kind_is_refused(driver: Driver) -> None:
    good = exchange(driver)
    for exchanges in ([], [good, good], [dataclasses.replace(good, path="/v1/count", method="GET")]):
        with pytest.raises(ReviewError, match="exactly one request"):
            check_wire(exchanges, driver.request(driver.server()), "the prompt")
