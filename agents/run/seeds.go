package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/train"
)

// Train trains every seed of the plan, as many at once as it allows, and summarises. The first
// error stops the others, whose state is saved. When ctx ends, so does each run, and the summary
// names the seeds that are left.
func (p *Plan) Train(ctx context.Context) (sum Summary, err error) {
	if err := p.branch(ctx); err != nil {
		return sum, fmt.Errorf("resume %s: %w", p.from, err)
	}
	if p.o.Executor != nil && !p.resume {
		// Before tasks are handed over: none is to be refused after others were trained.
		if err := p.Rehearse(ctx); err != nil {
			return sum, err
		}
	}
	if err := p.claim(); err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, p.release()) }()
	if p.Group() && p.resume {
		changes, err := trainChanges(p.kinds, p.dir, p.cfg)
		if err == nil {
			err = RefuseChanges(changes)
		}
		if err == nil {
			err = redescribe(p.dir, p.cfg, p.job.root())
		}
		if err != nil {
			return sum, fmt.Errorf("resume %s: %w", p.dir, err)
		}
		p.known = true
	}
	runs, err := p.trainSeeds(ctx)
	if err != nil {
		return sum, err
	}
	sum = Summary{Dir: p.dir, Runs: []RunSummary{}, LookAhead: p.kinds.LookAhead(p.factory)}
	for i, r := range runs {
		if r != nil {
			sum.Runs = append(sum.Runs, *r)
		}
		if r == nil || r.Stopped == train.Interrupted || r.Stopped == train.Paused {
			sum.Unfinished = append(sum.Unfinished, p.Seeds()[i])
		}
	}
	sum.combine()
	if !p.Group() || len(sum.Unfinished) > 0 {
		return sum, nil
	}
	return sum, WriteJSON(filepath.Join(p.dir, SummaryFile), sum)
}

// trainSeeds returns what came of each seed, nil for those that were not begun.
func (p *Plan) trainSeeds(ctx context.Context) ([]*RunSummary, error) {
	seeds := p.Seeds()
	runs := make([]*RunSummary, len(seeds))
	err := Each(ctx, p.o.Parallel, len(seeds), func(ctx context.Context, i int) error {
		s, err := p.trainSeed(ctx, seeds[i])
		if err == nil {
			runs[i] = &s
		} else if p.Group() {
			err = fmt.Errorf("seed %d: %w", seeds[i], err)
		}
		return err
	})
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return runs, nil // They are interrupted.
	}
	return runs, err
}

// describeGroup makes the directory of several seeds something to resume, once one of them is.
func (p *Plan) describeGroup() error {
	if !p.Group() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known {
		return nil
	}
	if err := p.describe(p.dir, p.cfg, nil); err != nil {
		return err
	}
	if err := WriteConfig(p.dir, p.cfg); err != nil {
		return err
	}
	p.known = true
	return nil
}
