package app

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestDataLiveSeries trades with a published series and timestamps as features: bars that arrive
// one by one lead to the same decisions as a file, and nothing looks ahead.
func TestDataLiveSeries(t *testing.T) {
	t.Parallel()
	rates := "known,rate\n2019-12-01,1\n"
	for i := range 40 {
		rates += fmt.Sprintf("2020-%02d-%02d,%g\n", 1+i/4, 1+i%4*7, 2+float64(i%5)/10)
	}
	file := apptest.MarketCSV(t)
	config := apptest.Write(t, "run.yaml", fmt.Sprintf(`seed: 1
env:
  kind: trading
  window: 8
  data:
    source: {path: %q}
    series: [{path: %q, columns: [rate], published: known}]
    features: {indicators: {sma: [5]}, extra: [rate], timestamps: true}
    split: {train: [2020-01-01, 2020-06-30], valid: [2020-07-01, 2020-08-31], test: [2020-09-01, 2020-12-31]}
agent: {kind: a2c, n_steps: 10, encoder: {kind: timecnn, d_model: 4, n_layers: 1}}
train: {num_envs: 1, total_env_steps: 40, validation: {every_steps: 40}}
publish: {observations: 64, allow_ties: true}
`, file, apptest.Write(t, "rates.csv", rates)))
	if text := apptest.Succeed(t, "data", "lookahead", config); !strings.Contains(text, "no value depends on later rows") {
		t.Errorf("%s", text)
	}
	run := filepath.Join(t.TempDir(), "run")
	apptest.Succeed(t, "train", config, "--engine", portable.Name, "--quiet", "--out", run)
	live := []string{"data", "live", run, "--engine", portable.Name, "--from", "2020-09-01", "--bars"}
	whole := apptest.Succeed(t, append(live, file)...)
	bars, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	cmd := apptest.Program(t, append(live, "-")...)
	var out, errw bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(bars), &out, &errw
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, errw.String())
	}
	if strings.Count(whole, "\n") < 30 || out.String() != whole {
		t.Errorf("bars that arrive one by one give\n%.300s\nand a file\n%.300s", out.String(), whole)
	}
}
