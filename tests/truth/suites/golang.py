"""Go modules: builds that fail, panics, files that a build tag leaves out, programs that leave early."""

from __future__ import annotations

from truth.case import Case, go

VALUE = "package v\n\nfunc Add(a, b int) int { return a + b }\n"
TEST = """\
package v

import "testing"

func TestAdd(t *testing.T) {
	if Add(1, 2) != 3 {
		t.Errorf("got %d", Add(1, 2))
	}
}

func TestOther(t *testing.T) {}
"""
MODULE = {"v.go": VALUE, "v_test.go": TEST}
BREAK = ("return a + b", "return a - b")

GOLANG: tuple[Case, ...] = (
    go("go module: a broken sum is caught", MODULE, BREAK, "detected named-test-failed"),
    go("go module: no Go any more", MODULE, ("return a + b", "return a +"), "inconclusive no-named-test"),
    go("go module: a panic", MODULE, ("return a + b", 'panic("x")'), "inconclusive ended-early"),
    go(
        "go module: a file that a build tag leaves out",
        {**MODULE, "never.go": "//go:build never\n\npackage v\n\nfunc Never() int { return a + b }\n"},
        BREAK,
        "not-exercised control-stayed-green",
        mutated="never.go",
    ),
    go(
        "go module: leaves with 0 before its tests",
        {
            "v.go": VALUE,
            "v_test.go": TEST.replace('"testing"', '"os"\nimport "testing"')
            + "\nfunc TestMain(m *testing.M) { os.Exit(0) }\n",
        },
        None,
        "inconclusive no-tests",
        "inconclusive ended-early",
    ),
    go("go module: no tests", {"v.go": VALUE}, None, "inconclusive no-tests", "inconclusive ended-early"),
)
