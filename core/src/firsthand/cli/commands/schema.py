"""`firsthand schema`."""

from __future__ import annotations

import json
import sys

from firsthand.definition import json_schema


def run() -> None:
    """Print the JSON Schema of the definition."""
    sys.stdout.write(json.dumps(json_schema(), indent=2, ensure_ascii=True) + "\n")
