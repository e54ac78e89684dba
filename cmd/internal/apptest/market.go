package apptest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// MarketCSV writes a made-up market of two stocks over 300 days, and returns the file's path; B is
// listed on day 60 and has a bad row.
func MarketCSV(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("date,symbol,open,high,low,close,volume\n")
	r := rand.New(rand.NewPCG(1, 1))
	price := []float64{20, 50}
	for d := range 300 {
		for n, s := range []string{"A", "B"} {
			o := price[n] * math.Exp(0.01*r.NormFloat64())
			c := o * math.Exp(0.01*r.NormFloat64())
			price[n] = c
			if n == 1 && d < 60 {
				continue
			}
			if n == 1 && d == 100 {
				o = -1
			}
			date := time.Date(2020, 1, 1+d, 0, 0, 0, 0, time.UTC).Format(time.DateOnly)
			fmt.Fprintf(&b, "%s,%s,%.4f,%.4f,%.4f,%.4f,%d\n", date, s, o, max(o, c)*1.01, min(math.Abs(o), c)*0.99, c, 1000+r.IntN(500))
		}
	}
	return Write(t, "bars.csv", b.String())
}

// TinyMarket is a run of 200 env steps on three made-up assets: under a second.
const TinyMarket = `seed: 7
publish: {observations: 64, allow_ties: true}
env:
  kind: trading
  window: 4
  episode: {kind: random, length: 40}
  data:
    synthetic: {kind: noise, seed: 3, bars: 420, assets: 3}
    features: {prices: relative, volume: log, indicators: {rsi: [5]}}
    split: {train: [2000-01-03, 2000-10-31], valid: [2000-11-01, 2001-03-15], test: [2001-03-16, 2001-08-10]}
agent:
  kind: a2c
  encoder: {kind: timecnn, d_model: 8, n_layers: 1}
  learning_rate: 0.01
  n_steps: 10
train:
  num_envs: 2
  total_env_steps: 200
  log_interval_steps: 100
  validation: {every_steps: 100, metric: sharpe}
  checkpoint: {every_steps: 100}
eval:
  bootstrap: {samples: 50}
`

// TrainYAML writes a training run on the made-up market that takes a second, and returns its path:
// 60 learner steps of 20 env steps each, validated six times. Pairs of edits replace parts of it.
func TrainYAML(t *testing.T, edits ...string) string {
	t.Helper()
	text := fmt.Sprintf(`seed: 1
env:
  kind: trading
  window: 4
  episode: {kind: random, length: 20}
  data:
    source: {path: %q}
    features: {indicators: {sma: [5]}}
    split: {train: [2020-01-01, 2020-06-30], valid: [2020-07-01, 2020-08-31], test: [2020-09-01, 2020-12-31]}
agent:
  kind: a2c
  encoder: {kind: timecnn, d_model: 4, n_layers: 1}
  learning_rate: 0.003
  n_steps: 5
  gamma: 0.96
  ent_coef: 0.05
  vf_coef: 1.0
  max_grad_norm: 1.0
  optimizer: {kind: adam}
  reduction: sum
  encoders: shared
train:
  num_envs: 4
  total_env_steps: 1200
  log_interval_steps: 60
  threads: 1
  checkpoint: {every_steps: 100}
  validation: {every_steps: 200, metric: sharpe}
publish: {observations: 64, allow_ties: true}
`, MarketCSV(t))
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("nothing to replace: %q", edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return Write(t, "tiny.yaml", text)
}
