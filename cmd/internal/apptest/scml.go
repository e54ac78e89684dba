package apptest

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/league"
)

// Plays lets agents compete, none of which may do anything that is unsafe, or panic.
func Plays(t *testing.T, names ...string) {
	t.Helper()
	r := Decode[league.Report](t, Succeed(t, slices.Concat([]string{"scml", "tournament"}, names, []string{"--configs", "2", "--days", "6,8", "--json"})...))
	for _, s := range r.Standings {
		if s.Unsafe > 0 || s.Faults.Count() > 0 || s.Actions == 0 {
			t.Errorf("%+v", s)
		}
	}
	if len(r.Standings) != len(names) {
		t.Errorf("%d of %d agents have played", len(r.Standings), len(names))
	}
}
