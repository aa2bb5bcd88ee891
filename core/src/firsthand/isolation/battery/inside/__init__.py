"""What runs inside an enclosure, and unconfined as its control: standard library only, one JSON line per attempt."""
