"""The corpus: suites and mutations that other tools were fooled by, and what is true of each."""

from __future__ import annotations

from truth.case import Case
from truth.suites.elsewhere import ELSEWHERE
from truth.suites.empty import EMPTY
from truth.suites.ends import ENDS
from truth.suites.golang import GOLANG
from truth.suites.honest import HONEST
from truth.suites.loading import LOADING
from truth.suites.reports import REPORTS
from truth.suites.unsteady import UNSTEADY

CORPUS: tuple[Case, ...] = (*HONEST, *ENDS, *LOADING, *ELSEWHERE, *EMPTY, *REPORTS, *UNSTEADY, *GOLANG)
