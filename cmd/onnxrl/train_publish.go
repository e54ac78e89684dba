package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"

	"onnxrl/agents/train"
	"onnxrl/cmd/internal/experiment"
	"onnxrl/cmd/internal/publish"
	"onnxrl/export/bake"
)

// versioner publishes a policy after a run.
type versioner interface {
	train.Publisher
	Version(ctx context.Context, policy train.Policy) (ref string, err error)
}

// publishBest proves the best policy of a run that has ended and publishes it, where the document does not publish every improvement. A policy that is too undecided to be published ends no run: the summary says why it is not. When ctx ends, the run counts as interrupted, and publishes when it is resumed.
//
// It can take minutes, so it tells notes what it does.
func (r *trainRun) publishBest(ctx context.Context, to versioner, log *slog.Logger, notes io.Writer, s *runSummary) error {
	if r.cfg.Publish.When == experiment.AtImprovements {
		return nil
	}
	policy, err := r.tr.BestPolicy(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	which := ""
	if r.plan.group() {
		which = fmt.Sprintf("seed %d: ", r.seed)
	}
	// A note that cannot be written ends no run.
	_, _ = fmt.Fprintf(notes, "%sproving the policy of env step %d on %d observations, to publish it\n", which, policy.EnvSteps, r.cfg.Publish.Observations)
	ref, err := to.Version(ctx, policy)
	switch {
	case errors.Is(err, bake.ErrTies):
		// The candidate was kept when it was found; now its file also counts the validations after that.
		if _, err := to.Publish(ctx, policy); err != nil {
			return err
		}
		s.Unpublished = err.Error()
		log.Warn("the best policy is not published", "reason", err)
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		s.Stopped = train.Interrupted
	case err != nil:
		return fmt.Errorf("publish the best policy: %w", err)
	}
	s.Published = ref
	return nil
}

// unpublished says of a finished run why its best policy is not published, and how to publish it all the same.
func (s *runSummary) unpublished() string {
	return fmt.Sprintf("not published: %s: %s\n  onnxrl models publish --allow-ties %s", filepath.Join(s.Dir, publish.BestFile), s.Unpublished, s.Dir)
}
