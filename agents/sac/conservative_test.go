package sac

import (
	"errors"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestCQLWithoutWeightIsSAC: the regulariser with a weight of 0 changes no bit of what SAC learns.
func TestCQLWithoutWeightIsSAC(t *testing.T) {
	compared := 0
	for what, spec := range sorted.All(map[string]envs.Spec{"box": agenttest.Box(), "discrete": agenttest.Choice()}) {
		plain, _ := training(t, 2, spec, nil)
		weightless, _ := training(t, 2, spec, func(c *Config) {
			c.Conservative = &Conservative{NActionSamples: 4, SoftQBackup: true, InitialAlpha: 1}
		})
		plain.Run(t, 40)
		weightless.Run(t, 40)
		a, b := plain.Agent.Learner().(*learner), weightless.Agent.Learner().(*learner)
		if a.Updates < 20 || a.Updates != b.Updates {
			t.Fatalf("%s: %d and %d updates", what, a.Updates, b.Updates)
		}
		for _, s := range a.Networks.Specs {
			if x := a.Params.View(s.Name).Float32s(); !slices.Equal(x, b.Params.View(s.Name).Float32s()) {
				t.Errorf("%s: %s differs", what, s.Name)
			} else {
				compared += len(x)
			}
		}
		if a.temperature.log[0] != b.temperature.log[0] {
			t.Errorf("%s: the temperatures are %v and %v", what, a.temperature.log, b.temperature.log)
		}
	}
	if compared < 1000 {
		t.Errorf("%d numbers", compared)
	}
}

// valuesOf returns the means over a batch of the first critic's values of the recorded actions and
// of uniform ones.
func valuesOf(t *testing.T, l *learner) (data, random float64) {
	t.Helper()
	n := l.Networks
	d := &design{Networks: n, c: l.c}
	g := n.Graph("values")
	const action = "action"
	v, _, err := d.critics(g, d.Torso.Inputs(g, ""), g.Batched(action, tensor.Float32, n.Frame.Dims))
	if err != nil {
		t.Fatal(err)
	}
	g.Output("q", onnx.Value(v[0]))
	net, err := d.Over(g)
	if err != nil {
		t.Fatal(err)
	}
	p, err := program.New(net, l.Params, program.Config{Engine: l.Setup.Engine, Batch: l.c.BatchSize, BatchSymbol: layer.Batch})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	mean := func() (sum float64) {
		if err := p.Run(); err != nil {
			t.Fatal(err)
		}
		for _, x := range p.Output("q").Float32s() {
			sum += float64(x) / float64(l.c.BatchSize)
		}
		return sum
	}
	s := rng.New(5).Stream()
	const batches = 40
	for range batches {
		if err := l.Draw(0); err != nil {
			t.Fatal(err)
		}
		for i, f := range n.Frame.Spec.Observation {
			if in := p.Input(f.Name); in != nil {
				if err := in.CopyFrom(l.Batch.Obs[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := p.Input(action).CopyFrom(l.Batch.Action); err != nil {
			t.Fatal(err)
		}
		data += mean() / batches
		s.FillUniform32(p.Input(action).Float32s(), -1, 1)
		random += mean() / batches
	}
	return data, random
}

// TestConservativeGapGrows: the average value of the data's actions less that of random ones grows
// with the weight. The data are those of a policy far from uniform.
func TestConservativeGapGrows(t *testing.T) {
	var gaps []float64
	for _, w := range []float64{0, 1, 10} {
		r, l := training(t, 2, agenttest.Box(), func(c *Config) {
			c.LearningRate, c.EntCoef, c.BufferSize = 3e-3, EntCoef{Value: 0.01}, 1000
			c.Conservative = &Conservative{Weight: w, NActionSamples: 5, InitialAlpha: 1}
		})
		record(t, r.Env, l, 100)
		var sum losses
		for range 200 {
			if err := l.update(1, &sum); err != nil {
				t.Fatal(err)
			}
		}
		data, random := valuesOf(t, l)
		gaps = append(gaps, data-random)
	}
	if !(gaps[0]+0.1 < gaps[1] && gaps[1]+0.1 < gaps[2]) {
		t.Errorf("the values of data less those of random actions are %v for weights of 0, 1 and 10", gaps)
	}
}

// record records actions near 0.7 of all of their range.
func record(t *testing.T, env vector.Env, l *learner, rounds int) {
	t.Helper()
	box := env.Spec().Action.(envs.Box)
	d := vector.Decision{Actions: tensor.New(box.Of, append([]int{env.Len()}, box.Dims...)...), Drawn: tensor.New(tensor.Float32, env.Len(), l.Networks.Frame.Dims)}
	s := rng.New(3).Stream()
	for range rounds {
		for i := range d.Drawn.Float32s() {
			x := 0.7 + 0.1*s.Float64()
			r := box.Bounds(i % l.Networks.Frame.Dims)
			d.Drawn.Float32s()[i], d.Actions.Float32s()[i] = float32(x), float32((r.High+r.Low)/2+(r.High-r.Low)/2*x)
		}
		if err := errors.Join(l.rec.Begin(env.Batch(), &d), env.Step(d.Actions), l.rec.End(env.Batch())); err != nil {
			t.Fatal(err)
		}
	}
}

// TestConservativeRefuses has what the regulariser does not go with.
func TestConservativeRefuses(t *testing.T) {
	agenttest.BadConfigs(t, CQLKind, map[string][]string{
		"vtrace: {length: 2}":              {"conservative", "vtrace.length"},
		"use_sde: true":                    {"conservative", "use_sde"},
		"conservative: {weight: -1}":       {"weight", "-1"},
		"conservative: {initial_alpha: 0}": {"initial_alpha"},
		"conservative: {n_action_samples: 0, alpha_learning_rate: -1}": {"n_action_samples", "alpha_learning_rate"},
	})
}
