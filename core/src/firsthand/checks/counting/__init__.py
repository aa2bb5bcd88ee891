"""Counting tests: what each runner says of them, as data that may only lower a verdict."""

from firsthand.checks.counting.reporting import REPORT_BYTES, Reporting, reporting_for
from firsthand.checks.counting.tally import Counted, UnreadableReportError
from firsthand.checks.counting.tests import count_tests

__all__ = ["REPORT_BYTES", "Counted", "Reporting", "UnreadableReportError", "count_tests", "reporting_for"]
