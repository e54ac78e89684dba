package app

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// TestTablesFold: at 60 columns no line of a table is wider, and nothing of it is lost.
func TestTablesFold(t *testing.T) {
	wide := apptest.Succeed(t, "algo", "ls").Out
	t.Setenv("COLUMNS", "60")
	narrow := apptest.Succeed(t, "algo", "ls").Out
	for line := range strings.Lines(narrow) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if a, b := strings.Fields(wide), strings.Fields(narrow); wide == narrow || len(a) != len(b) {
		t.Errorf("%d words, and %d folded:\n%s", len(a), len(b), narrow)
	}
}
