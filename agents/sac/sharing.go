package sac

import "github.com/onnxrl/onnxrl/agents/rlmath"

// sharing weighs transitions of other policies.
type sharing struct {
	// logPi is the present policy's log-probability of the recorded actions, logMu that of the
	// policy that took them, and rho are the clipped ratios, [batch] each.
	logPi, logMu, rho []float32
}

// newSharing asks the learner's batch for what it compares.
func newSharing(l *learner) *sharing {
	n := l.c.BatchSize
	s := &sharing{logPi: l.Targets.Output(behaviourOutput).Float32s(), logMu: make([]float32, n), rho: make([]float32, n)}
	l.Batch.LogProb = s.logMu
	return s
}

// ratios weighs the batch, once the targets program has run, and returns the clipped ratios of its
// rows; nil where nothing is compared.
func (l *learner) ratios() []float32 {
	switch s := l.sharing; {
	case l.Sources == nil:
		return nil
	case s != nil:
		rlmath.Ratios(s.rho, s.logPi, s.logMu)
		l.Sources.Weigh(s.rho, l.c.Sharing.ClipRho)
		return s.rho
	case l.trace != nil:
		for i, x := range l.trace.rho {
			l.trace.rho[i] = min(x, float32(l.c.VTrace.ClipRho))
		}
		return l.trace.rho
	}
	return nil
}
