package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestDataColumns trains on a file of columns and on what it was made from: all that is measured is
// equal.
func TestDataColumns(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	file := filepath.Join(t.TempDir(), "market.columns")
	members := apptest.Write(t, "members.csv", "symbol,start_date,end_date\nA,2020-01-01,2020-04-20\nA,2020-05-10,\nB,2020-01-01,\n")
	data := marketYAML(t, "  window: 8", "  window: 8\n  universe: {path: "+members+"}")
	if r := apptest.Run(t, "data", "prepare", data, "--columns", "--out", file); r.Code != 0 || !strings.Contains(r.Out, "universe") {
		t.Fatalf("exit status %d\n%s\n%s", r.Code, r.Out, r.Err)
	}
	if r := apptest.Run(t, "data", "inspect", file); r.Code != 0 || !strings.Contains(r.Out, "N = 2     A B") || !strings.Contains(r.Out, "train") {
		t.Errorf("exit status %d\n%s\n%s", r.Code, r.Out, r.Err)
	}
	if r := apptest.Run(t, "data", "prepare", apptest.Write(t, "again.yaml", fmt.Sprintf("stored: %q", file))); r.Code == 0 || !strings.Contains(r.Err, "no bars to prepare") {
		t.Errorf("exit status %d\n%s", r.Code, r.Err)
	}
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "data:\n")
	section = strings.ReplaceAll(section, "  window: 8\n", "")
	var metrics [2][]map[string]string
	for i, data := range []string{"\n" + section, fmt.Sprintf(" {stored: %q}\n", file)} {
		experiment := apptest.Write(t, "e.yaml", `agent: {kind: a2c, encoder: {kind: timecnn, d_model: 4, n_layers: 1}, cross_asset: {n_heads: 2}, n_steps: 10}
train: {num_envs: 2, total_env_steps: 200, log_interval_steps: 40, threads: 1}
publish: {observations: 16, allow_ties: true}
env:
  kind: trading
  window: 8
  slots: 2
  data:`+strings.ReplaceAll(data, "\n  ", "\n    "))
		dir := filepath.Join(t.TempDir(), "run")
		apptest.TrainRuns(t, experiment, "--out", dir)
		metrics[i] = apptest.TrainMetrics(t, dir)
	}
	if len(metrics[0]) < 5 || len(metrics[0]) != len(metrics[1]) {
		t.Fatalf("%d and %d lines", len(metrics[0]), len(metrics[1]))
	}
	for i, line := range metrics[0] {
		if !maps.Equal(line, metrics[1][i]) {
			t.Errorf("line %d: %v, and %v from the file", i, line, metrics[1][i])
		}
	}
}

// TestBenchHistory steps through a small one.
func TestBenchHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "report.json")
	if r := apptest.Run(t, "bench", "history", "--days", "30", "--bars", "8", "--assets", "20", "--members", "6", "--out", path); r.Code != 0 {
		t.Fatalf("exit status %d\n%s", r.Code, r.Err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r benchmark.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(r.Rows, func(row benchmark.Row) bool { return row.Name == "history/steps" })
	if len(r.Rows) < 3 || i < 0 || r.Rows[i].Value <= 0 || !strings.Contains(r.Rows[i].Measures, "220 steps") {
		t.Errorf("%+v", r.Rows)
	}
}
