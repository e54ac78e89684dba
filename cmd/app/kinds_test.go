package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/envs/corridor"
)

// TestKindsAreListed: env, algo and encoder ls show the shipped kinds, and those that somebody's
// program has besides, with the spaces of environments that need nothing.
func TestKindsAreListed(t *testing.T) {
	t.Parallel()
	own := kinds.All()
	mine := corridor.Kind
	mine.Name, mine.Summary = "mine", "a user-defined environment"
	own.Envs = append(own.Envs, mine)
	ls := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := execute(t.Context(), own, args, nil, &out, &errs); code != 0 || errs.Len() > 0 {
			t.Fatalf("%v: exit status %d\n%s", args, code, errs.String())
		}
		return out.String()
	}
	var rows []kindRow
	if err := json.Unmarshal([]byte(ls("env", "ls", "--json")), &rows); err != nil {
		t.Fatal(err)
	}
	found := map[string]kindRow{}
	for _, r := range rows {
		found[r.Kind] = r
	}
	if len(rows) != len(own.Envs) {
		t.Errorf("%d rows, expected %d", len(rows), len(own.Envs))
	}
	if r := found["mine"]; r.Summary != mine.Summary || r.Action != "discrete(2)" || !r.Masked || r.Observation["position"] == "" {
		t.Errorf("mine: %+v", r)
	}
	if r := found["trading"]; r.Needs == "" || r.Action != "" {
		t.Errorf("trading: %+v", r)
	}
	for _, c := range [][]string{{"env", "mine  ", "float32[4] -> discrete(2)", "discrete(70), masked", "needs Python"}, {"algo", "ppo  ", "maskable_ppo  "}, {"encoder", "file  ", "timecnn  "}} {
		table := ls(c[0], "ls")
		for _, want := range c[1:] {
			if !strings.Contains(table, want) {
				t.Errorf("%s ls does not show %q:\n%s", c[0], want, table)
			}
		}
	}
}
