package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// ServeActor acts for a run of another process, whose requests are in and whose answers are out,
// until in ends.
func ServeActor(ctx context.Context, kinds experiment.Kinds, e engine.Compiler, log *slog.Logger, in io.Reader, out io.Writer) error {
	return actors.Serve(ctx, in, out, func(ctx context.Context, document []byte, index int) (o actors.Opened, err error) {
		doc, err := configs.Parse("the document of the run", document)
		if err != nil {
			return o, err
		}
		cfg := experiment.Defaults()
		if err := doc.Decode(&cfg); err != nil {
			return o, err
		}
		if index >= cfg.Train.Actors.Count {
			return o, fmt.Errorf("actor %d of a run of %d", index, cfg.Train.Actors.Count)
		}
		kinds.Note = nil // Whoever started the run has been told.
		cfg, factory, maker, err := kinds.On(e).Open(ctx, cfg)
		if err != nil {
			return o, err
		}
		s := kinds.Setup(cfg, e)
		s.Log = log
		a, s, err := train.NewActor(factory, s, cfg.Train, index)
		if err != nil {
			return o, errors.Join(err, factory.Close())
		}
		return actors.Opened{Actor: a, Maker: maker, Setup: s, Close: factory.Close}, nil
	})
}

// actors returns what reaches the actors of a run, nil where they are in this process.
func (r *Run) actors(log *slog.Logger) (_ *actors.Remote, err error) {
	c, launch := r.cfg.Train.Actors, r.plan.o.Actor
	if len(c.URLs) > 0 {
		if launch, err = r.plan.kinds.LaunchActors(c, r.plan.o.Engine.Name(), log); err != nil {
			return nil, err
		}
	}
	if !c.Elsewhere() || launch == nil {
		return nil, nil
	}
	doc, err := configs.Marshal(r.cfg)
	if err != nil {
		return nil, err
	}
	return &actors.Remote{Launch: launch, Document: doc}, nil
}
