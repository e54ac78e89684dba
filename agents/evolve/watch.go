package evolve

import (
	"context"
	"errors"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// watched begins to show the search to those who watch it; nobody may.
func (s *Search) watched() {
	s.watch = metrics.Unwatched{}
	if w := s.o.Run.Watch; w != nil {
		s.watch = w.Search(run.Label(s.ledger.Dir), len(s.records), s.c.Generations)
	}
	if len(s.records) > 0 {
		s.show()
	}
}

// show tells of the newest generation.
func (s *Search) show() {
	g := len(s.records)
	list := s.records[g-1]
	members := make([]metrics.Member, len(list))
	for i, r := range list {
		members[i] = metrics.Member{Score: float64(r.Score), Distance: float64(r.Distance), Hyper: r.Values}
	}
	s.watch.Generation(g, float64(list[order(s.c, list)[0]].Score), mapdOf(list), members)
}

// ended tells how the interval of a member has ended; one that was interrupted has not.
func (s *Search) ended(r *Record, err error, took time.Duration) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case err != nil:
		s.watch.Interval(metrics.IntervalFailed, took)
	case r.RolledBack != "":
		s.watch.Interval(metrics.IntervalRolledBack, took)
	default:
		s.watch.Interval(metrics.IntervalFinished, took)
	}
}
