from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from firsthand.errors import PluginError
from firsthand.isolation.interface import Backend
from firsthand.plugins import BACKENDS, OBSERVERS, PROVIDERS, Catalogue, discover
from firsthand.plugins.plugin import MEMBERS

NewSite = Callable[[], Any]


def names(catalogue: Catalogue) -> list[str]:
    return [plugin.name for plugin in catalogue.plugins]


def test_shipped_backends_are_found_with_their_distribution_and_version() -> None:
    plugin = discover(BACKENDS).find("unavailable")
    assert (plugin.distribution, plugin.version) == ("firsthand-unavailable", "0.1.0")
    assert plugin.shipped
    assert plugin.entry_point.dist is not None
    assert plugin.entry_point.dist.name == "firsthand-unavailable"


def test_listing_imports_nothing(site: Any) -> None:
    module = site.install("acme-box", "acme", "raise RuntimeError('imported')")
    before = set(sys.modules)
    assert "acme" in names(discover(BACKENDS))
    assert module not in sys.modules
    assert {name for name in set(sys.modules) - before if name.startswith("firsthand_")} == set()


def test_a_plugin_installed_after_a_listing_is_seen_by_the_next(site: Any) -> None:
    # Many installs in a row: two of them share a tick of the folder's mtime, which a cache would go by.
    for number in range(30):
        site.install(f"late-{number}", f"late-{number}")
        assert f"late-{number}" in names(discover(BACKENDS))


def test_groups_do_not_mix(site: Any) -> None:
    site.install("acme-watch", "acme", group=OBSERVERS)
    assert "acme" not in names(discover(BACKENDS))
    assert names(discover(OBSERVERS)) == ["acme"]


def test_an_editable_install_seen_twice_counts_once(site: Any) -> None:
    text = f"[{BACKENDS}]\nacme = acme_box:Backend\n"
    site.metadata("acme-box", "1.0", text)
    site.metadata("Acme_Box", "1.0", text, kind="egg-info")
    catalogue = discover(BACKENDS)
    assert names(catalogue).count("acme") == 1
    assert catalogue.broken == ()


@pytest.mark.parametrize("second", ["acme", "ACME", "Acme"])
@pytest.mark.parametrize("order", ["as installed", "reversed"])
def test_two_distributions_with_one_name_are_refused_whatever_the_order(
    new_site: NewSite, second: str, order: str
) -> None:
    sites = (new_site(), new_site())
    first_site, second_site = reversed(sites) if order == "reversed" else sites
    first_site.metadata("box-one", "1.0", f"[{BACKENDS}]\nacme = one:Backend\n")
    second_site.metadata("box-two", "2.0", f"[{BACKENDS}]\n{second} = two:Backend\n")
    catalogue = discover(BACKENDS)
    assert "acme" not in [name.lower() for name in names(catalogue)]
    with pytest.raises(PluginError) as caught:
        catalogue.find("acme")
    assert "box-one 1.0 and box-two 2.0" in caught.value.message
    assert "uninstall all but one" in caught.value.next_step


def test_dashes_and_underscores_do_not_tell_names_apart(site: Any) -> None:
    site.metadata("box-one", "1.0", f"[{BACKENDS}]\nmy-box = one:Backend\n")
    site.metadata("box-two", "1.0", f"[{BACKENDS}]\nmy_box = two:Backend\n")
    with pytest.raises(PluginError, match="offered more than once"):
        discover(BACKENDS).find("my_box")


def test_two_values_in_one_distribution_are_a_conflict_too(site: Any) -> None:
    site.metadata("box-one", "1.0", f"[{BACKENDS}]\nacme = one:Backend\nAcme = two:Backend\n")
    with pytest.raises(PluginError, match=r"box-one 1\.0 as one:Backend, box-one 1\.0 as two:Backend"):
        discover(BACKENDS).find("acme")


@pytest.mark.parametrize("name", ["unavailable", "Unavailable", "bubblewrap", "seatbelt", "claude"])
def test_a_shipped_name_is_refused_to_a_stranger(site: Any, name: str) -> None:
    before = discover(BACKENDS)
    site.metadata("evil-box", "6.6", f"[{BACKENDS}]\n{name} = evil:Backend\n")
    catalogue = discover(BACKENDS)
    assert catalogue.plugins == before.plugins
    refused = [broken for broken in catalogue.broken if broken.owners == ("evil-box 6.6",)]
    assert len(refused) == 1
    assert f"belongs to firsthand-{name.lower()}" in refused[0].reason


def test_finding_a_shipped_name_that_only_a_stranger_offers_is_refused(site: Any) -> None:
    # In a group where its owner offers nothing, so that nothing of its own can be found.
    site.metadata("evil-box", "6.6", f"[{PROVIDERS}]\nseatbelt = evil:Backend\n")
    with pytest.raises(PluginError, match=r"evil-box 6\.6 can't be used: the name 'seatbelt' belongs to"):
        discover(PROVIDERS).find("seatbelt")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"[{BACKENDS}]\nacme\n", "malformed"),
        (f"[{BACKENDS}]\nacme = box:Backend\n[console_scripts]\nbroken line\n", "malformed"),
        (b"[firsthand.backends]\nacme = \xff\xfe:Backend\n", "can't be read"),
        (f"[{BACKENDS}]\na\x1b[2Jcme = box:Backend\n", "can't be named"),
    ],
)
def test_unreadable_entry_points_are_listed_and_spoil_nothing_else(site: Any, text: str | bytes, reason: str) -> None:
    site.metadata("bad-box", "3.1", text)
    site.install("good-box", "good")
    catalogue = discover(BACKENDS)
    assert "good" in names(catalogue)
    (broken,) = catalogue.broken
    assert broken.owners == ("bad-box 3.1",)
    assert reason in broken.reason
    assert broken.reason.isprintable()
    assert "bad-box" in broken.next_step
    # It may be the one that is asked for: never a plain "not found".
    with pytest.raises(PluginError, match=r"no plug-in named 'acme'.*bad-box 3.1 could not be read"):
        catalogue.find("acme")


def test_a_value_that_names_no_module_is_listed_under_its_name(site: Any) -> None:
    site.metadata("bad-box", "1.0", f"[{BACKENDS}]\nacme = not a module\n")
    with pytest.raises(PluginError, match="does not say module:attribute"):
        discover(BACKENDS).find("acme")


def test_malformed_entry_points_of_a_distribution_that_is_no_plugin_do_not_concern_us(site: Any) -> None:
    site.metadata("other", "1.0", "[console_scripts]\nbroken line\n")
    assert discover(BACKENDS).broken == ()


def test_an_empty_leftover_folder_is_listed(site: Any) -> None:
    (site.folder / "gone_box-0.9.dist-info").mkdir()
    (broken,) = discover(BACKENDS).broken
    assert broken.owners == ("gone_box 0.9",)
    assert "left behind" in broken.reason


def test_a_plugin_without_metadata_is_named_after_its_folder(site: Any) -> None:
    folder = site.metadata("acme-box", "1.0", f"[{BACKENDS}]\nacme = box:Backend\n")
    (folder / "METADATA").unlink()
    plugin = discover(BACKENDS).find("acme")
    assert (plugin.distribution, plugin.version) == ("acme_box", "1.0")


def test_a_directory_in_place_of_entry_points_is_listed(site: Any) -> None:
    folder = site.metadata("acme-box", "1.0", None)
    (folder / "entry_points.txt").mkdir()
    (broken,) = discover(BACKENDS).broken
    assert broken.owners == ("acme-box 1.0",)


def test_members_name_what_the_backend_contract_demands() -> None:
    # This room may not import the contract, so the agreement is held here.
    contract = {name for name in vars(Backend) if not name.startswith("_")} | set(Backend.__annotations__)
    assert set(MEMBERS[BACKENDS]) == contract
