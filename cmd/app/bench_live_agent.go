package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// benchAgentYAML is an agent that has learnt nothing, with QTMRL's features.
const benchAgentYAML = `seed: 1
publish: {observations: 16, allow_ties: true}
env:
  kind: trading
  window: 20
  episode: {kind: random, length: 40}
  data:
    synthetic: {kind: noise, seed: 3, bars: 420, assets: %d}
    features:
      prices: relative
      volume: log
      indicators: {sma: [10, 20, 50], ema: [12, 26], rsi: [14], macd: [12, 26, 9], atr: [14], bbands: [20, 2.0], ichimoku: [9, 26, 52], heikin_ashi: true, supertrend: [10, 3.0]}
    split: {train: [2000-01-03, 2000-12-31], valid: [2001-01-01, 2001-03-31], test: [2001-04-01, 2001-08-10]}
agent:
  kind: a2c
  encoder: {kind: timecnn, d_model: 16, n_layers: 1}
  n_steps: 10
train:
  num_envs: 1
  total_env_steps: 20
  validation: {every_steps: 20, metric: sharpe}
`

// benchAgent makes an agent of so many assets in a directory, and returns its run.
func (a *app) benchAgent(ctx context.Context, dir string, assets int) (_ string, err error) {
	doc, out := filepath.Join(dir, "bench.yaml"), filepath.Join(dir, "run")
	if err := os.WriteFile(doc, fmt.Appendf(nil, benchAgentYAML, assets), 0o600); err != nil {
		return "", err
	}
	silent := *a
	silent.quiet, silent.kinds.Note = true, func(string) {}
	p, err := silent.openPlan(ctx, doc, &trainFlags{out: out})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	sum, err := p.train(ctx)
	if err == nil && len(sum.Unfinished) > 0 {
		err = errInterrupted
	}
	return out, err
}
