"""A small project with a unittest suite and one line for each mutation."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from benchmarks.projects.definition import write_definition


def cart_project(root: Path, *, mutations: int) -> tuple[Path, Path]:
    """Make the project in a new folder.

    Returns:
        The paths of its definition and of a plan with that many mutations, each of which its suite catches.
    """
    (root / "tests").mkdir(parents=True)
    source = "".join(f"def step_{number}(value):\n    return value + {number}\n\n\n" for number in range(mutations))
    tests = "".join(
        f"    def test_step_{number}(self):\n        self.assertEqual(cart.step_{number}(1), {number + 1})\n\n"
        for number in range(mutations)
    )
    (root / "cart.py").write_text(source, encoding="utf-8")
    (root / "tests" / "__init__.py").write_text("", encoding="utf-8")
    (root / "tests" / "test_cart.py").write_text(
        f"import unittest\n\nimport cart\n\n\nclass Steps(unittest.TestCase):\n{tests}", encoding="utf-8"
    )
    (root / "README.md").write_text("Steps that add.\n", encoding="utf-8")
    python = str(Path(sys.executable).resolve())
    config = write_definition(
        root,
        files=["README.md", "cart.py", "tests/__init__.py", "tests/test_cart.py"],
        checks=[{"id": "cart", "command": [python, "-m", "unittest"]}],
        mutation_paths=["cart.py"],
    )
    plan = root.parent / f"{root.name}-plan.json"
    plan.write_text(
        json.dumps(
            [
                {"check": "cart", "path": "cart.py", "old": f"value + {number}\n", "new": f"value - {number} - 1\n"}
                for number in range(mutations)
            ]
        ),
        encoding="utf-8",
    )
    return config, plan
