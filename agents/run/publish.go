package run

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// versioner publishes a policy after a run.
type versioner interface {
	train.Publisher
	Version(ctx context.Context, policy train.Policy) (ref string, err error)
}

// publishBest checks the parity of the best policy of a run that has ended and publishes it, unless
// that was done when it was found. A policy that is too undecided to be published, and an
// environment that fails while its parity is checked, end no run: the summary says why it is not
// published. When ctx ends, the run counts as interrupted, and publishes when it is resumed.
func (r *Run) publishBest(ctx context.Context, to versioner, log *slog.Logger, s *RunSummary) error {
	policy, err := r.tr.BestPolicy(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	if r.cfg.Publish.When == experiment.AtImprovements && s.Published != "" {
		// Another may have been published last.
		if done, err := publishedFile(filepath.Join(r.path, publish.BestFile), policy.EnvSteps); err != nil || done {
			return err
		}
	}
	if r.plan.o.Hooks.Prove != nil {
		r.plan.o.Hooks.Prove(r, policy)
	}
	ref, err := to.Version(ctx, policy)
	switch {
	case errors.Is(err, bake.ErrTies):
		// The candidate was kept when it was found; now its file also counts the validations after
		// that.
		if _, err := to.Publish(ctx, policy); err != nil {
			return err
		}
		s.Unpublished = err.Error()
		s.PublishWith = r.publishWith(true)
		log.Warn("the best policy is not published", "reason", err)
	case errors.Is(err, publish.ErrObservations):
		s.Unpublished = err.Error()
		s.PublishWith = r.publishWith(false)
		log.Warn("the best policy is not published", "reason", err)
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		s.Stopped = train.Interrupted
	case err != nil:
		return fmt.Errorf("publish the best policy: %w", err)
	}
	s.Published = ref
	return nil
}

// publishWith is the command line that publishes the best policy later.
func (r *Run) publishWith(ties bool) string {
	if r.plan.o.Hooks.PublishWith == nil {
		return ""
	}
	return r.plan.o.Hooks.PublishWith(r.path, ties)
}

// publishedFile reports whether a file is the published policy of an env step.
func publishedFile(path string, envSteps int64) (bool, error) {
	at, ok, err := publish.StepsOf(path)
	if err != nil || !ok || at != envSteps {
		return false, err
	}
	m, err := onnx.Load(path)
	return err == nil && !publish.IsCandidate(m), err
}
