package offpolicy

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestNoise holds mean, deviation and memory of the noises against their definitions, and clips.
func TestNoise(t *testing.T) {
	s, x := rng.New(2).Stream(), make([]float32, 2)
	none := newNoise(Noise{Kind: None, Sigma: 9}, 1, 2)
	if none.add(x, s); x[0] != 0 || x[1] != 0 {
		t.Errorf("no noise is %v", x)
	}
	wild := newNoise(Noise{Kind: Normal, Sigma: 100}, 1, 2)
	for range 20 {
		x[0], x[1] = 0.5, -0.5
		if wild.add(x, s); max(x[0], x[1]) > 1 || min(x[0], x[1]) < -1 {
			t.Errorf("actions of %v", x)
		}
	}
	const draws = 40_000
	for _, c := range []struct {
		noise     Noise
		std, next float64
	}{
		{Noise{Kind: Normal, Sigma: 0.1, Dt: 1}, 0.1, 0},
		// A stationary Ornstein-Uhlenbeck process in steps: variance σ²·dt/(1 − (1 − θ·dt)²), and
		// the correlation of neighbours is 1 − θ·dt.
		{Noise{Kind: OU, Sigma: 0.2, Theta: 0.5, Dt: 0.2}, 0.2 * math.Sqrt(0.2/(1-0.81)), 0.9},
	} {
		z := newNoise(c.noise, 1, 1)
		var square, product, last float64
		for range draws {
			e := make([]float32, 1)
			z.add(e, s)
			v := float64(e[0])
			square, product, last = square+v*v, product+v*last, v
		}
		if std, next := math.Sqrt(square/draws), product/square; math.Abs(std/c.std-1) > 0.05 || math.Abs(next-c.next) > 0.03 {
			t.Errorf("%s: a deviation of %g, expected %g, and a correlation of %g, expected %g", c.noise.Kind, std, c.std, next, c.next)
		}
	}
}
