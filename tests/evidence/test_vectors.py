from __future__ import annotations

import json

import pytest

from evidence.vectors import FOLDER, Vector, index, published_key, vectors
from firsthand.evidence import load_public_key, verify

VECTORS = {vector.name: vector for vector in vectors()}


@pytest.mark.parametrize("vector", VECTORS.values(), ids=VECTORS)
def test_the_published_file_is_judged_as_its_row_says(vector: Vector) -> None:
    raw = (FOLDER / f"{vector.name}.json").read_bytes()
    assert raw == vector.raw, "make the vectors again: see evidence/vectors.py"
    answer = verify(raw, trusted_keys=(published_key().public,))
    assert (answer.valid, answer.signed) == (vector.valid, vector.signed), answer.problems
    codes = {problem.code for problem in answer.problems}
    assert codes == (set() if vector.valid else {"evidence_invalid"})
    assert vector.valid or vector.where in {problem.where for problem in answer.problems}, answer.problems


def test_the_folder_holds_what_the_index_lists_and_nothing_else() -> None:
    raw = (FOLDER / "index.json").read_bytes()
    assert raw == index()
    table = json.loads(raw)
    listed = {row["file"] for row in table["vectors"]}
    assert {path.name for path in FOLDER.iterdir()} == listed | {"index.json", "key.pub.pem"}
    assert load_public_key(FOLDER / "key.pub.pem").key_id == table["keyId"]
    assert len(listed) == len(table["vectors"])
