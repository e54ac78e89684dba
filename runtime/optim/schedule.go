package optim

import (
	"errors"
	"fmt"
	"math"
)

// Schedule is a value that depends on how far a run has come: a learning rate,
// a clip range, an entropy coefficient. It is a pure function; nothing needs to
// be saved to resume it. Without a kind it is constant.
type Schedule struct {
	// Kind is the course of the value after any warm-up, with t the steps since
	// the warm-up and D the duration:
	//
	//	constant (or empty)  Initial
	//	linear               from Initial to Final, straight, then Final
	//	cosine               from Initial to Final along half a cosine, then Final
	//	exponential          Initial * Gamma^(t/Every), at least Final
	//	step                 Initial * Gamma^floor(t/Every), at least Final
	//	piecewise            through Points, see there
	Kind    string  `yaml:"kind,omitempty"`
	Initial float64 `yaml:"initial,omitempty"`
	Final   float64 `yaml:"final,omitempty"`

	// Steps is the duration D of linear and cosine; 0 is the rest of the run.
	Steps uint64 `yaml:"steps,omitempty"`

	Gamma float64 `yaml:"gamma,omitempty"` // factor of exponential and step, in (0, 1]
	Every uint64  `yaml:"every,omitempty"` // steps per factor; 0 means 1

	// Points of piecewise, by increasing At: Initial holds until the first, and
	// each value until the next, or, with Interpolate, the value moves straight
	// from (0, Initial) through the points. The last value holds.
	Points      []Point `yaml:"points,omitempty"`
	Interpolate bool    `yaml:"interpolate,omitempty"`

	// Relative says that Initial, Final and Points are multiples of the value that a
	// configuration gives beside the schedule, see [Schedule.Of].
	Relative bool `yaml:"relative"`

	// Warmup is the number of steps in which the value rises straight from
	// WarmupFrom times the first value of the kind to that value. Everything
	// else counts its steps from the end of the warm-up.
	Warmup     uint64  `yaml:"warmup,omitempty"`
	WarmupFrom float64 `yaml:"warmup_from,omitempty"` // in [0, 1]
}

// Point is a value of a piecewise schedule.
type Point struct {
	At uint64 `yaml:"at"` // steps after the warm-up
	// Value is what holds from there on, or is passed there with Interpolate.
	Value float64 `yaml:"value"`
}

// WithInitial returns s with Initial set to v if it is zero, so that a
// configuration can give the learning rate once.
func (s Schedule) WithInitial(v float64) Schedule {
	if s.Initial == 0 {
		s.Initial = v
	}
	return s
}

// At returns the value for the step that follows step completed ones, in a run
// of total steps. Steps beyond total are allowed. The result depends on total
// only for linear and cosine without Steps.
func (s Schedule) At(step, total uint64) float64 {
	if step < s.Warmup {
		rise := float64(step) / float64(s.Warmup)
		return s.course(0, 1) * (s.WarmupFrom + (1-s.WarmupFrom)*rise)
	}
	duration := s.Steps
	if duration == 0 && total > s.Warmup {
		duration = total - s.Warmup
	}
	return s.course(step-s.Warmup, duration)
}

// Of returns the value of a schedule beside which a configuration gives v, which
// it begins with, after step steps of a run of total steps. Where the length of
// the run is not known, 0, a schedule that lasts as long holds v.
func (s Schedule) Of(v float64, step, total int64) float64 {
	if s.Relative {
		return v * s.Factor(v, step, total)
	}
	if s.holds(total) {
		return v
	}
	return s.WithInitial(v).At(uint64(step), uint64(total))
}

// Factor returns what v is multiplied with to give [Schedule.Of].
func (s Schedule) Factor(v float64, step, total int64) float64 {
	switch {
	case s.holds(total):
		return 1
	case s.Relative:
		return s.WithInitial(1).At(uint64(step), uint64(total))
	}
	return s.Of(v, step, total) / v
}

// Lasting reports whether the schedule takes as long as the run.
func (s Schedule) Lasting() bool { return s.Steps == 0 && (s.Kind == "linear" || s.Kind == "cosine") }

func (s Schedule) holds(total int64) bool { return total == 0 && s.Lasting() }

// Follows reports whether the schedule begins with the value that a configuration
// gives beside it, and with no other.
func (s Schedule) Follows() bool { return s.Initial == 0 || s.Relative && s.Initial == 1 }

// course is the value t steps after the warm-up.
func (s Schedule) course(t, duration uint64) float64 {
	progress := 1.0
	if t < duration {
		progress = float64(t) / float64(duration)
	}
	every := float64(max(1, s.Every))
	switch s.Kind {
	case "linear":
		return mix(s.Initial, s.Final, progress)
	case "cosine":
		return mix(s.Initial, s.Final, (1-math.Cos(math.Pi*progress))/2)
	case "exponential":
		return max(s.Final, s.Initial*math.Pow(s.Gamma, float64(t)/every))
	case "step":
		return max(s.Final, s.Initial*math.Pow(s.Gamma, math.Floor(float64(t)/every)))
	case "piecewise":
		return s.piecewise(t)
	}
	return s.Initial
}

func (s Schedule) piecewise(t uint64) float64 {
	from := Point{At: 0, Value: s.Initial}
	for _, p := range s.Points {
		if t < p.At {
			if s.Interpolate {
				return mix(from.Value, p.Value, float64(t-from.At)/float64(p.At-from.At))
			}
			return from.Value
		}
		from = p
	}
	return from.Value
}

// mix is exact at both ends.
func mix(a, b, t float64) float64 {
	if t == 1 {
		return b
	}
	return a + (b-a)*t
}

// Validate reports every problem of s, joined, each beginning with its field.
func (s Schedule) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	uses := map[string][]string{
		"": {}, "constant": {},
		"linear": {"final", "steps"}, "cosine": {"final", "steps"},
		"exponential": {"final", "gamma", "every"}, "step": {"final", "gamma", "every"},
		"piecewise": {"points", "interpolate"},
	}
	used, ok := uses[s.Kind]
	if !ok {
		bad("kind", "unknown schedule %q, want constant, linear, cosine, exponential, step or piecewise", s.Kind)
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"final", s.Final != 0}, {"steps", s.Steps != 0}, {"gamma", s.Gamma != 0}, {"every", s.Every != 0},
		{"points", len(s.Points) > 0}, {"interpolate", s.Interpolate},
	} {
		isUsed := false
		for _, u := range used {
			isUsed = isUsed || u == f.name
		}
		if ok && f.set && !isUsed {
			bad(f.name, "not used by kind %q", s.Kind)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"initial", s.Initial}, {"final", s.Final}} {
		if math.IsNaN(f.value) || math.IsInf(f.value, 0) {
			bad(f.name, "%g is not finite", f.value)
		}
	}
	if (s.Kind == "exponential" || s.Kind == "step") && !(s.Gamma > 0 && s.Gamma <= 1) {
		bad("gamma", "%g is not in (0, 1]", s.Gamma)
	}
	if s.Kind == "piecewise" && len(s.Points) == 0 {
		bad("points", "none given")
	}
	for i, p := range s.Points {
		if i > 0 && p.At <= s.Points[i-1].At {
			bad(fmt.Sprintf("points[%d].at", i), "%d does not follow %d", p.At, s.Points[i-1].At)
		}
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			bad(fmt.Sprintf("points[%d].value", i), "%g is not finite", p.Value)
		}
	}
	if !(s.WarmupFrom >= 0 && s.WarmupFrom <= 1) {
		bad("warmup_from", "%g is not in [0, 1]", s.WarmupFrom)
	}
	if s.WarmupFrom != 0 && s.Warmup == 0 {
		bad("warmup_from", "needs warmup")
	}
	return errors.Join(errs...)
}
