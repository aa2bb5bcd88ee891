"""The demonstration: an honest check, a hostile one, a mutation that is caught and one that is not."""
