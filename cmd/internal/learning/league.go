package learning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/league"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
)

// leagued trains a league, and scores it as the task says.
func leagued(ctx context.Context, t Task, seed uint64, o Options) (r Result, err error) {
	dir, err := os.MkdirTemp("", "league-*")
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	dir = filepath.Join(dir, t.Name)
	l, err := league.Open(ctx, cmp.Or(t.Document, t.Name), league.Options{
		Kinds: kinds.All(), Run: run.Options{Engine: o.Engine}, Dir: dir, Sets: slices.Concat(t.Sets, o.Sets, []string{fmt.Sprintf("experiment.seed=%d", seed)}),
		Steps: func(n int64) {
			if r.EnvSteps += n; o.Each != nil {
				o.Each(train.Progress{EnvSteps: r.EnvSteps})
			}
		},
	})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if _, err := l.Begin(); err != nil {
		return r, err
	}
	if err := l.Train(ctx); err != nil {
		return r, err
	}
	s := l.Summarize()
	r.EnvSteps = s.EnvSteps
	if t.Against == "" {
		e, err := l.Exploit(ctx)
		if err != nil {
			return r, err
		}
		if e == nil {
			return r, errors.New("the world is no matrix game, and the task names nobody to play against")
		}
		r.Score, r.Final = -e.Average, -e.Newest
		return r, nil
	}
	f, err := league.OpenField(ctx, dir, kinds.All(), t.World...)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	for _, x := range []struct {
		greedy bool
		to     *float64
	}{{true, &r.Score}, {false, &r.Final}} {
		m, err := f.Play(ctx, o.Engine, s.Published, t.Against, t.Games, x.greedy, seed)
		if err != nil {
			return r, err
		}
		*x.to = m.Total().Score()
	}
	return r, nil
}
