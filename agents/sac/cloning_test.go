package sac

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestActorLossWithBC: without values the loss is the distance to the recorded actions alone, and
// the rest of it is proportional to λ, which is alpha over the mean size of the values.
func TestActorLossWithBC(t *testing.T) {
	compared := 0
	for what, spec := range sorted.All(map[string]envs.Spec{"box": agenttest.Box(), "discrete": agenttest.Choice()}) {
		r, l := training(t, 2, spec, func(c *Config) { c.BC = &offpolicy.BC{Alpha: 2} })
		r.Run(t, 40)
		sum := 0.0
		for _, q := range l.NextQ {
			sum += math.Abs(float64(q)) / float64(len(l.NextQ))
		}
		if got := float64(l.lambda[0]); math.Abs(got-2/sum) > 1e-5*got || l.Updates < 20 {
			t.Errorf("%s: λ is %v after %d updates, expected %v", what, got, l.Updates, 2/sum)
		}
		if err := l.draw(); err != nil {
			t.Fatal(err)
		}
		loss := func(lambda float32) float64 {
			l.lambda[0] = lambda
			if err := l.Actor.Run(); err != nil {
				t.Fatal(err)
			}
			return float64(l.ActorLoss[0])
		}
		none, one, three := loss(0), loss(1), loss(3)
		if want := none + 3*(one-none); math.Abs(three-want) > 1e-4*(1+math.Abs(want)) || one == none {
			t.Errorf("%s: losses %v, %v and, with λ 3, %v", what, none, one, three)
		}
		if want := distance(t, l); math.Abs(none-want) > 1e-5*(1+want) || want <= 0 {
			t.Errorf("%s: a loss of %v, expected %v", what, none, want)
		}
		compared++
	}
	if compared != 2 {
		t.Errorf("%d kinds of actions", compared)
	}
}

// distance is that of the acting network's best actions to those of the batch, or the mean of
// −log π of these.
func distance(t *testing.T, l *learner) (sum float64) {
	t.Helper()
	n := l.c.BatchSize
	p, err := program.New(l.Networks.Act, l.Params, program.Config{Engine: l.Setup.Engine, Batch: n, BatchSymbol: layer.Batch})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, p)
	for i, f := range l.Networks.Frame.Spec.Observation {
		if in := p.Input(f.Name); in != nil {
			if err := in.CopyFrom(l.Batch.Obs[i]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if in := p.Input(agents.MaskInput); in != nil {
		if err := in.CopyFrom(l.Batch.Mask); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	if !l.Networks.Frame.Continuous() {
		logProbs := p.Output(agents.LogProbsOutput).Float32s()
		for i, a := range l.Batch.Action.Int64s() {
			sum -= float64(logProbs[i*len(logProbs)/n+int(a)]) / float64(n)
		}
		return sum
	}
	taken := l.Batch.Action.Float32s()
	for i, m := range p.Output(agents.MeanOutput).Float32s() {
		x := math.Tanh(float64(m)) - float64(taken[i])
		sum += x * x / float64(len(taken))
	}
	return sum
}
