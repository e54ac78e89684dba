package optim

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestSchedule(t *testing.T) {
	points := []Point{{10, 1}, {20, 3}}
	cases := []struct {
		name        string
		s           Schedule
		step, total uint64
		want        float64
	}{
		{"constant", Schedule{Initial: 2}, 99, 0, 2},
		{"linear start", Schedule{Kind: "linear", Initial: 2}, 0, 10, 2},
		{"linear middle", Schedule{Kind: "linear", Initial: 2}, 5, 10, 1},
		{"linear end", Schedule{Kind: "linear", Initial: 0.1, Final: 0.3}, 10, 10, 0.3},
		{"linear beyond", Schedule{Kind: "linear", Initial: 2, Final: 1}, 50, 10, 1},
		{"linear own duration", Schedule{Kind: "linear", Initial: 2, Steps: 4}, 2, 100, 1},
		{"linear without duration", Schedule{Kind: "linear", Initial: 2, Final: 1}, 0, 0, 1},
		{"cosine middle", Schedule{Kind: "cosine", Initial: 2, Final: 1}, 5, 10, 1.5},
		{"cosine end", Schedule{Kind: "cosine", Initial: 2, Final: 1}, 10, 10, 1},
		{"exponential floor", Schedule{Kind: "exponential", Initial: 1, Gamma: 0.5, Final: 0.1}, 9, 0, 0.1},
		{"exponential, every", Schedule{Kind: "exponential", Initial: 1, Gamma: 0.25, Every: 10}, 5, 0, 0.5},
		{"step", Schedule{Kind: "step", Initial: 1, Gamma: 0.5, Every: 10}, 19, 0, 0.5},
		{"piecewise before", Schedule{Kind: "piecewise", Initial: 5, Points: points}, 9, 0, 5},
		{"piecewise at", Schedule{Kind: "piecewise", Initial: 5, Points: points}, 10, 0, 1},
		{"piecewise after", Schedule{Kind: "piecewise", Initial: 5, Points: points}, 1000, 0, 3},
		{"piecewise straight", Schedule{Kind: "piecewise", Initial: 5, Points: points, Interpolate: true}, 5, 0, 3},
		{"piecewise straight 2", Schedule{Kind: "piecewise", Initial: 5, Points: points, Interpolate: true}, 15, 0, 2},
		{"warm-up start", Schedule{Initial: 2, Warmup: 4}, 0, 0, 0},
		{"warm-up middle", Schedule{Initial: 2, Warmup: 4, WarmupFrom: 0.5}, 2, 0, 1.5},
		{"warm-up over", Schedule{Kind: "linear", Initial: 2, Warmup: 4}, 4, 14, 2},
		{"after warm-up", Schedule{Kind: "linear", Initial: 2, Warmup: 4}, 9, 14, 1},
		{"warm-up longer than run", Schedule{Kind: "linear", Initial: 2, Final: 1, Warmup: 4}, 4, 3, 1},
	}
	for _, c := range cases {
		if err := c.s.Validate(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := c.s.At(c.step, c.total); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
	if len(cases) != 22 {
		t.Fatalf("%d cases, want 22", len(cases))
	}
	if s := (Schedule{Kind: "linear"}).WithInitial(3); s.Initial != 3 || s.WithInitial(4).Initial != 3 {
		t.Error("WithInitial does not fill a zero, or replaces a value")
	}
}

func TestValidateSchedule(t *testing.T) {
	s := Schedule{Kind: "step", Initial: math.NaN(), Steps: 3, Gamma: 2, WarmupFrom: 0.5,
		Points: []Point{{5, 1}, {5, math.Inf(1)}}, Interpolate: true}
	err := s.Validate()
	want := []string{"initial: NaN", "steps: not used", "gamma: 2", "points: not used", "interpolate: not used",
		"points[1].at: 5 does not follow 5", "points[1].value: +Inf", "warmup_from: needs warmup"}
	if n := strings.Count(err.Error(), "\n") + 1; n != len(want) {
		t.Errorf("%d problems, want %d:\n%v", n, len(want), err)
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not reported", w)
		}
	}
	for text, s := range sorted.All(map[string]Schedule{
		"unknown schedule":      {Kind: "poly"},
		"points: none":          {Kind: "piecewise"},
		"gamma: 0 is not":       {Kind: "exponential"},
		"warmup_from: 2 is not": {Warmup: 3, WarmupFrom: 2},
	}) {
		mustErr(t, text, s.Validate)
	}
}

func TestPolyakCopies(t *testing.T) {
	dst := []float32{1, 1e30, 3}
	Polyak(dst, []float32{0.1, 1, 7}, 1)
	if want := []float32{0.1, 1, 7}; !sameBits(dst, want) {
		t.Errorf("tau 1 gives %v, want %v", dst, want)
	}
}

// TestScheduleOf: beside a value a schedule gives values or, where it is relative, multiples, and
// holds where it lasts as long as a run whose length is not known.
func TestScheduleOf(t *testing.T) {
	for i, c := range []struct {
		s            Schedule
		step, total  int64
		value, times float64
	}{
		{Schedule{}, 7, 10, 8, 1},
		{Schedule{Kind: "linear"}, 5, 10, 4, 0.5},
		{Schedule{Kind: "linear", Final: 4}, 5, 10, 6, 0.75},
		{Schedule{Kind: "linear", Final: 0.5, Relative: true}, 5, 10, 6, 0.75},
		{Schedule{Kind: "linear", Final: 4}, 5, 0, 8, 1},
		{Schedule{Kind: "linear", Final: 0.5, Relative: true}, 5, 0, 8, 1},
		{Schedule{Kind: "linear", Final: 0.5, Steps: 10, Relative: true}, 5, 0, 6, 0.75},
		{Schedule{Kind: "piecewise", Points: []Point{{At: 3, Value: 2}}}, 3, 0, 2, 0.25},
		{Schedule{Kind: "piecewise", Points: []Point{{At: 3, Value: 2}}, Relative: true}, 3, 0, 16, 2},
		{Schedule{Kind: "exponential", Gamma: 0.5, Relative: true, Initial: 1}, 2, 0, 2, 0.25},
	} {
		if v, f := c.s.Of(8, c.step, c.total), c.s.Factor(8, c.step, c.total); v != c.value || f != c.times {
			t.Errorf("case %d: %v and %v times, expected %v and %v", i, v, f, c.value, c.times)
		}
		if want := c.s.Initial == 0 || c.s.Relative; c.s.Follows() != want {
			t.Errorf("case %d: Follows is %v", i, !want)
		}
	}
}
