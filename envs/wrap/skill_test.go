package wrap_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestSkills: what is drawn has the distribution that the document asks for, stays throughout the
// episode, and leaves the rest of the episode as it is without.
func TestSkills(t *testing.T) {
	fixed, episodes := 2, 3000
	for _, c := range []wrap.Skills{{Dim: 4}, {Dim: 4, Kind: wrap.Sphere}, {Dim: 4, Fixed: &fixed}} {
		plain := &slider{}
		e, err := wrap.NewSkill(&slider{}, c)
		if err != nil {
			t.Fatal(err)
		}
		ts, raw, sum, squares := envs.NewTimeStep(e.Spec()), envs.NewTimeStep(sliderSpec), [4]float64{}, [4]float64{}
		a := tensor.Of([]float32{1, 0.25}, 2)
		for i := range episodes {
			key := rng.New(3).Split("episode", i)
			if err := errors.Join(e.Reset(key, ts), plain.Reset(key, raw)); err != nil {
				t.Fatal(err)
			}
			z, norm := slices.Clone(ts.Obs[2].Float32s()), 0.0
			if err := errors.Join(e.Step(a, ts), plain.Step(a, raw)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(ts.Obs[2].Float32s(), z) || !slices.Equal(ts.Obs[0].Float32s(), raw.Obs[0].Float32s()) || ts.Reward != raw.Reward {
				t.Fatalf("%+v: %v after %v, %v and not %v", c, ts.Obs[2].Float32s(), z, ts.Obs[0].Float32s(), raw.Obs[0].Float32s())
			}
			for k, x := range z {
				sum[k] += float64(x) / float64(episodes)
				squares[k] += float64(x) * float64(x) / float64(episodes)
				norm += float64(x) * float64(x)
			}
			if math.Abs(norm-1) > 1e-6 || c.Fixed != nil && z[2] != 1 {
				t.Fatalf("%+v: %v", c, z)
			}
		}
		mean := 0.25
		if c.Kind == wrap.Sphere {
			mean = 0
		}
		for k := range sum {
			if c.Fixed == nil && (math.Abs(sum[k]-mean) > 0.04 || math.Abs(squares[k]-0.25) > 0.04) {
				t.Errorf("%+v: element %d has mean %g and mean square %g, expected %g and 0.25", c, k, sum[k], squares[k], mean)
			}
		}
	}
	// Environments of training draw whatever is fixed for others.
	skilled := wrap.Defaults()
	skilled.Skill = wrap.Skills{Dim: 4, Fixed: &fixed}
	f, err := wrap.Apply(sliders{}, skilled)
	if err != nil {
		t.Fatal(err)
	}
	for _, split := range []envs.Split{envs.Train, envs.Valid, envs.Test} {
		e, err := f.New(split, 0)
		if err != nil {
			t.Fatal(err)
		}
		ts, others := envs.NewTimeStep(e.Spec()), 0
		for i := range 40 {
			if err := e.Reset(rng.New(uint64(i)), ts); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(ts.Obs[len(ts.Obs)-1].Float32s(), wrap.FixedSkill(f)) {
				others++
			}
		}
		if (others > 0) != (split == envs.Train) || len(wrap.FixedSkill(f)) != 4 {
			t.Errorf("%s: %d of 40 episodes have another skill than %v", split, others, wrap.FixedSkill(f))
		}
	}
	six := 6
	for _, x := range []struct {
		c    wrap.Skills
		says string
	}{{wrap.Skills{Dim: 1}, "dim: must be at least 2"}, {wrap.Skills{Dim: 4, Fixed: &six}, "fixed: must be the number of one of 4 skills"}, {wrap.Skills{Dim: 4, Kind: "cube"}, "kind: must be one of"}, {wrap.Skills{Kind: wrap.Sphere}, "dim: "}} {
		if err := configs.Validate(x.c); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%+v: %v", x.c, err)
		}
	}
	once, err := wrap.NewSkill(&slider{}, wrap.Skills{Dim: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrap.NewSkill(once, wrap.Skills{Dim: 2}); err == nil || !strings.Contains(err.Error(), `there is a "skill" already`) {
		t.Error(err)
	}
}
