package population

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
)

// Publish publishes the router that is the best after its last turn, and with its experts as one
// model that acts in their environment, or the best expert where there is no router. The summary of
// a population that is published is in its directory.
func (p *Population) Publish(ctx context.Context) (sum Summary, err error) {
	sum = p.Summarize()
	if err := run.ReadJSON(filepath.Join(p.ledger.Dir, run.FinishedFile), &sum); err == nil {
		return sum, nil
	}
	began := time.Now()
	records := p.search.Records()
	last := records[len(records)-1]
	best := p.search.Best(last)
	if p.early == nil {
		p.publishEarly(ctx)
	}
	paths, err := p.early.wait()
	if err != nil {
		return sum, err
	}
	for i, path := range paths {
		if path == "" {
			continue
		}
		if sum.Policies = append(sum.Policies, path); last[i].Member == best.Member {
			sum.Published = path
		}
	}
	if p.routers != nil {
		sum.Published, err = p.publishRouter(ctx)
	}
	if err != nil {
		return sum, err
	}
	if sum.Published == "" {
		return sum, fmt.Errorf("there is nothing to publish: all %d experts have diverged from the beginning; the first: %s", len(last), last[0].RolledBack)
	}
	p.seconds.Publish = time.Since(began).Seconds()
	sum.Seconds.Publish = p.seconds.Publish
	return sum, run.WriteJSON(filepath.Join(p.ledger.Dir, run.FinishedFile), sum)
}

// publication is the publishing of the experts of the last generation.
type publication struct {
	done  chan struct{}
	paths []string // by member; empty for one without a policy
	err   error
}

func (p *publication) wait() ([]string, error) {
	<-p.done
	return p.paths, p.err
}

// publishEarly begins to publish the experts of the last generation: while the router takes its
// last turn, which keeps no more than one core busy where there is one.
func (p *Population) publishEarly(ctx context.Context) {
	records := p.search.Records()
	last := records[len(records)-1]
	p.early = &publication{done: make(chan struct{}), paths: make([]string, len(last))}
	go func(x *publication) {
		defer close(x.done)
		x.err = run.Each(ctx, p.search.Parallel(), len(last), func(ctx context.Context, i int) (err error) {
			if r := last[i]; r.Dir != "" {
				x.paths[i], err = p.search.Publish(ctx, r)
			}
			return err
		})
	}(p.early)
}

// publishRouter publishes the best router, and with its experts as one model, whose path it
// returns.
func (p *Population) publishRouter(ctx context.Context) (path string, err error) {
	turns := p.routers.Records()
	best := p.routers.Best(turns[len(turns)-1])
	if _, err := p.routers.Publish(ctx, best); err != nil {
		return "", fmt.Errorf("publish the router: %w", err)
	}
	dir := filepath.Join(p.routers.Dir(), filepath.FromSlash(best.Dir))
	plan, err := run.Open(ctx, p.o.Kinds, "", run.Job{Resume: dir}, p.o.Run)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, plan.Close()) }()
	if _, err = plan.PublishWhole(ctx, run.PublishOptions{}); err != nil {
		return "", fmt.Errorf("publish the router with its experts: %w", err)
	}
	return filepath.Join(dir, publish.WholeDir, publish.BestFile), nil
}
