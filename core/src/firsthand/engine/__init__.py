"""The engine: composes the rooms below it into what the commands do."""
