package main

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"onnxrl/agents/train"
	"onnxrl/models/checkpoint"
	"onnxrl/runtime/progress"
)

// trainBar shows how far all runs of a plan have come together.
type trainBar struct {
	*progress.Progress
	plan *trainPlan

	mu    sync.Mutex
	total int64
	done  map[uint64]int64
	shown time.Time
	// watch, unless nil, is told the env steps of a run after every learner step.
	watch func(envSteps int64)
}

func (a *app) startBar(p *trainPlan) *trainBar {
	b := &trainBar{plan: p, done: map[uint64]int64{}}
	var initial int64
	for _, seed := range p.seeds() {
		b.total += p.cfg.Train.TotalEnvSteps
		if list, err := checkpoint.List(filepath.Join(p.dirOf(seed), checkpointDir)); err == nil && len(list) > 0 {
			b.done[seed] = list[len(list)-1].Step
			initial += b.done[seed]
		}
	}
	b.Progress = progress.Start(a.err, progress.Options{Label: "train", Unit: "env steps", Total: b.total, Initial: initial, Quiet: a.quiet})
	return b
}

// step shows where a run is. Texts are made only as often as they can be seen.
func (b *trainBar) step(r *trainRun, p train.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now := time.Now(); now.Sub(b.shown) >= 100*time.Millisecond || p.EnvSteps >= p.TotalEnvSteps {
		b.shown = now
		if r.plan.group() {
			b.FieldText("seed", fmt.Sprint(r.seed))
		}
		for _, f := range []struct{ key, tag string }{{"loss", "train/loss"}, {"entropy", "train/entropy"}} {
			if v, ok := p.Metrics[f.tag]; ok {
				b.Field(f.key, v)
			}
		}
		if p.Validation != nil {
			b.Field("val "+r.cfg.Train.Validation.Metric, p.Validation.Score)
		}
	}
	b.Add(p.EnvSteps - b.done[r.seed])
	b.done[r.seed] = p.EnvSteps
	if b.watch != nil {
		b.watch(p.EnvSteps)
	}
}

// finished takes off what a run that has stopped early will not do.
func (b *trainBar) finished(r *trainRun) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total += r.tr.EnvSteps() - r.cfg.Train.TotalEnvSteps
	b.SetTotal(b.total)
}
