package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
)

// TestBenchEnv runs every row for a moment; it looks at the form and at the allocations, never at
// the speed.
func TestBenchEnv(t *testing.T) {
	var out, errs bytes.Buffer
	if code := execute(t.Context(), kinds.All(), []string{"bench", "env", "--json", "--rounds", "2", "--round", "2ms", "--envs", "8"}, nil, &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	var r benchmark.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 9 || r.Machine.CPU == "" {
		t.Errorf("%d rows on %q", len(r.Rows), r.Machine.CPU)
	}
	for _, row := range r.Rows {
		if row.Value <= 0 || row.Unit != "steps/s" || row.Allocs == nil || *row.Allocs != 0 {
			t.Errorf("row %+v", row)
		}
	}
	out.Reset()
	args := []string{"bench", "env", "-", "--json", "--rounds", "2", "--round", "2ms", "--envs", "3", "--set", "env.max_steps=20"}
	if code := execute(t.Context(), kinds.All(), args, strings.NewReader("env: {kind: cartpole}\nagent: {kind: ppo}\n"), &out, &errs); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Rows) != 3 || r.Rows[0].Name != "cartpole/single" || r.Rows[1].Value <= 0 {
		t.Errorf("%v, %+v", err, r.Rows)
	}
	if code := execute(t.Context(), kinds.All(), []string{"bench", "env", "--envs", "0"}, nil, &out, &errs); code == 0 {
		t.Error("a vector of no environments is accepted")
	}
}
