"""An example of a reviewer for Firsthand that asks no model."""
