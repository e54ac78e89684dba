package sac

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestDeviation: with gSDE there is Stable-Baselines3's train/std, which begins at
// exp(log_std_init).
func TestDeviation(t *testing.T) {
	r, l := training(t, 1, agenttest.Box(), func(c *Config) { c.UseSDE, c.LearningRate = true, 1e-9 })
	r.Run(t, 20)
	if got, want := r.Last["train/std"], math.Exp(l.c.LogStdInit); math.Abs(got-want) > 1e-6 {
		t.Errorf("train/std %g, expected %g", got, want)
	}
}

// TestTemperature: α falls while the entropy is above its target and rises while it is below,
// towards the target.
func TestTemperature(t *testing.T) {
	temperature, err := newTemperature(Config{EntCoef: EntCoef{Auto: true, Value: 0.1}, TargetEntropy: TargetEntropy{Value: -1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a := temperature.alpha(); math.Abs(float64(a)-0.1) > 1e-7 {
		t.Errorf("α begins at %g", a)
	}
	// The entropy is 2, above −1.
	loss, err := temperature.step(-2, -1, 0.01)
	if want := -math.Log(0.1) * -3; err != nil || math.Abs(loss-want) > 1e-5 {
		t.Errorf("a loss of %g, expected %g; %v", loss, want, err)
	}
	low := temperature.alpha()
	if low >= 0.1 {
		t.Errorf("α rises to %g", low)
	}
	for range 10 {
		if _, err := temperature.step(3, -1, 0.01); err != nil {
			t.Fatal(err)
		}
	}
	if a := temperature.alpha(); a <= low {
		t.Errorf("α falls from %g to %g", low, a)
	}
}

// TestTemperatureReachesTheTarget: the entropy of the policy settles at the target.
func TestTemperatureReachesTheTarget(t *testing.T) {
	longtest.Slow(t)
	r, _ := training(t, 4, agenttest.Box(), func(c *Config) {
		c.LearningRate, c.Gamma, c.BatchSize, c.BufferSize, c.TargetEntropy = 1e-2, 0, 64, 1000, TargetEntropy{Value: -2}
	})
	r.Run(t, 2500)
	sum := 0.0
	for range 100 {
		r.Run(t, 1)
		sum += r.Last["train/entropy"]
	}
	if got := sum / 100; math.Abs(got+2) > 0.2 {
		t.Errorf("an entropy of %g, expected the target of -2 within a tenth of it", got)
	}
}
