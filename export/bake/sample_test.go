package bake

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestSamplesAreTheBestWithoutNoiseAndFollowTheProbabilitiesWithIt draws many actions for one
// observation.
func TestSamplesAreTheBestWithoutNoiseAndFollowTheProbabilitiesWithIt(t *testing.T) {
	net, params := policy(t, 1)
	m, err := Agent(net, params.View, nil, scaled())
	if err != nil {
		t.Fatal(err)
	}
	m, err = Sample(m, choices()[0])
	if err != nil {
		t.Fatal(err)
	}
	samples, raw := recorded(t, 300)
	for _, c := range testengines.All(t) {
		s, err := c.Compile(m, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		given := map[string]*tensor.Tensor{"window": raw[0], "position": samples[1], "mask": samples[2], NoiseInput: tensor.New(tensor.Float32, 300, assets*alternatives)}
		out, err := runOn(t.Context(), s, given)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(out[0].Int64s(), out[3].Int64s()) {
			t.Errorf("%s: without noise the samples are not the best", c.Name())
		}

		const draws = 20_000
		key := rng.New(11).Stream()
		noise := tensor.New(tensor.Float32, draws, assets*alternatives)
		for i := range noise.Float32s() {
			noise.Float32s()[i] = float32(-math.Log(-math.Log(1 - key.Float64())))
		}
		given = map[string]*tensor.Tensor{NoiseInput: noise}
		for name, x := range sorted.All(map[string]*tensor.Tensor{"window": raw[0], "position": samples[1], "mask": samples[2]}) {
			given[name] = tensor.New(x.DType(), append([]int{draws}, x.Shape()[1:]...)...)
			for row := range draws {
				copy(given[name].Rows(row, row+1).Bytes(), x.Rows(1, 2).Bytes())
			}
		}
		if out, err = runOn(t.Context(), s, given); err != nil {
			t.Fatal(err)
		}
		counts := make([]float64, assets*alternatives)
		for i, a := range out[3].Int64s() {
			counts[i%assets*alternatives+int(a)]++
		}
		logs := out[1].Float32s()[:len(counts)]
		for i, n := range counts {
			p := math.Exp(float64(logs[i]))
			// Five standard deviations of a binomial count.
			if d := math.Abs(n - draws*p); d > 5*math.Sqrt(draws*p*(1-p))+1e-9 {
				t.Errorf("%s: alternative %d was drawn %g times, its probability is %g", c.Name(), i, n, p)
			}
			if valid := given["mask"].Bools()[i]; !valid && n > 0 {
				t.Errorf("%s: alternative %d is not valid and was drawn %g times", c.Name(), i, n)
			}
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSampleRefuses(t *testing.T) {
	net, params := policy(t, 1)
	m, err := Agent(net, params.View, nil, scaled())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		c    Choice
		want string
	}{
		{Choice{Output: "action", Scores: "value", Heads: []int{3, 3, 3}}, "the scores are float32[batch], expected float32[batch 9]"},
		{Choice{Output: "action", Scores: "log_probs", Heads: []int{3, 3}}, "expected float32[batch 6]"},
		{Choice{Output: "value", Scores: "log_probs", Heads: []int{3, 6}}, "the choice is float32[batch], expected one of 2 heads"},
		{Choice{Output: "actions", Scores: "log_probs", Heads: []int{9}}, "expected one of 1 heads"},
	} {
		if _, err := Sample(m, k.c); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%v: error %v, want %q", k.c, err, k.want)
		}
	}
	twice, err := Sample(m, choices()[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Sample(twice, choices()[0]); err == nil || !strings.Contains(err.Error(), `has a "noise" already`) {
		t.Errorf("twice: error %v", err)
	}
}
