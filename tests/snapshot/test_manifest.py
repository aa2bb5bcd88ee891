"""The manifest's digest binds every field of every entry, and their order."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from firsthand.records import Manifest, ManifestEntry

DIGESTS = st.text("0123456789abcdef", min_size=64, max_size=64)
PATHS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@st.composite
def entries(draw: st.DrawFn, path: str) -> ManifestEntry:
    if draw(st.booleans()):
        return ManifestEntry(path=path, state="missing", mode=None, size=None, links=None, sha256=None)
    return ManifestEntry(
        path=path,
        state="present",
        mode=draw(st.integers(0, 0o7777)),
        size=draw(st.integers(0, 2**21)),
        links=draw(st.integers(1, 100)),
        sha256=draw(DIGESTS),
    )


@st.composite
def manifests(draw: st.DrawFn, least: int = 1) -> Manifest:
    paths = draw(st.lists(PATHS, min_size=least, max_size=6, unique=True))
    return Manifest(entries=tuple(draw(entries(path)) for path in paths))


@given(manifests(), st.data())
def test_a_change_of_any_field_changes_the_digest(manifest: Manifest, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(manifest.entries) - 1))
    entry = manifest.entries[place]
    fields: dict[str, st.SearchStrategy[Any]] = {"path": PATHS}
    if entry.state == "present":
        fields |= {
            "mode": st.integers(0, 0o7777),
            "size": st.integers(0, 2**21),
            "links": st.integers(1, 100),
            "sha256": DIGESTS,
        }
    name = data.draw(st.sampled_from(sorted(fields)))
    value = data.draw(fields[name])
    assume(value != getattr(entry, name))
    changed = ManifestEntry(**{**dict(entry), name: value})
    others = (*manifest.entries[:place], changed, *manifest.entries[place + 1 :])
    assert Manifest(entries=others).canonical_digest() != manifest.canonical_digest()


@given(manifests(least=2), st.randoms(use_true_random=False))
def test_a_change_of_order_changes_the_digest(manifest: Manifest, random: Any) -> None:
    shuffled = list(manifest.entries)
    random.shuffle(shuffled)
    same = tuple(shuffled) == manifest.entries
    assert (Manifest(entries=tuple(shuffled)).canonical_digest() == manifest.canonical_digest()) is same


@given(manifests(), st.data())
def test_an_entry_less_or_another_state_changes_the_digest(manifest: Manifest, data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(manifest.entries) - 1))
    fewer = Manifest(entries=(*manifest.entries[:place], *manifest.entries[place + 1 :]))
    assert fewer.canonical_digest() != manifest.canonical_digest()
    entry = manifest.entries[place]
    if entry.state == "present":
        gone = ManifestEntry(path=entry.path, state="missing", mode=None, size=None, links=None, sha256=None)
        changed = Manifest(entries=(*manifest.entries[:place], gone, *manifest.entries[place + 1 :]))
        assert changed.canonical_digest() != manifest.canonical_digest()


@given(manifests())
def test_a_manifest_comes_back_from_its_own_json(manifest: Manifest) -> None:
    again = Manifest.model_validate_json(manifest.model_dump_json())
    assert again == manifest
    assert again.canonical_digest() == manifest.canonical_digest()


def test_composed_and_decomposed_paths_stay_different() -> None:
    digests = {
        Manifest(
            entries=(ManifestEntry(path=path, state="missing", mode=None, size=None, links=None, sha256=None),)
        ).canonical_digest()
        for path in ("caf\u00e9", "cafe\u0301")
    }
    assert len(digests) == 2
