package envs_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// spec returns one with a box, a window and a mask.
func spec(t *testing.T) envs.Spec {
	t.Helper()
	table := tensor.New(tensor.Float32, 10, 3)
	w, err := envs.NewWindow(table, 4)
	if err != nil {
		t.Fatal(err)
	}
	return envs.Spec{
		Name:        "toy",
		Observation: envs.Dict{{Name: "state", Space: envs.NewBox(0, 1, 2)}, {Name: "window", Space: envs.Unbounded(4, 3), Window: w}},
		Action:      envs.MultiDiscrete{N: []int{2, 2}}, Masked: true, Reward: envs.Range{Low: -1, High: 1}, Info: []string{"a", "b"}, MaxSteps: 9,
	}
}

func TestSpecValidate(t *testing.T) {
	good := spec(t)
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func(*envs.Spec){
		"no name":               func(s *envs.Spec) { s.Name = "" },
		"no observation":        func(s *envs.Spec) { s.Observation = nil },
		"name \"state\" is":     func(s *envs.Spec) { s.Observation[1].Name = "state" },
		"no space":              func(s *envs.Spec) { s.Observation[0].Space = nil },
		"expected at least":     func(s *envs.Spec) { s.Action = envs.Discrete{} },
		"no action space":       func(s *envs.Spec) { s.Action = nil },
		"cannot be masked":      func(s *envs.Spec) { s.Action = envs.Unbounded(1) },
		"rewards between":       func(s *envs.Spec) { s.Reward = envs.Range{Low: 1, High: 0} },
		"info 1":                func(s *envs.Spec) { s.Info = []string{"a", "a"} },
		"max steps":             func(s *envs.Spec) { s.MaxSteps = -1 },
		"do not have the space": func(s *envs.Spec) { s.Observation[1].Space = envs.Unbounded(3, 4) },
	}
	for want, change := range sorted.All(cases) {
		s := spec(t)
		change(&s)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
		if s.Equal(&good) {
			t.Errorf("%s: equals the good one", want)
		}
	}
	if good.Observation.Index("window") != 1 || good.Observation.Index("none") != -1 || good.InfoIndex("b") != 1 {
		t.Error("fields are not found by name")
	}
	if !good.Equal(&good) {
		t.Error("a spec does not equal itself")
	}
	if joint := spec(t); joint.Equal(&good) {
		t.Error("windows over two tables are equal")
	}
	joint := good
	if joint.Joint = true; joint.Equal(&good) {
		t.Error("actions of assets equal joint ones")
	}
}

func TestWindows(t *testing.T) {
	table := tensor.New(tensor.Float32, 6, 2)
	w, err := envs.NewWindow(table, 3)
	if err != nil {
		t.Fatal(err)
	}
	for last := 2; last < 6; last++ {
		v := w.At(last)
		if v.Len() != 6 || &v.Float32s()[0] != &table.Float32s()[2*(last-2)] {
			t.Errorf("window %d is %v", last, v)
		}
	}
	for _, n := range []int{0, 7} {
		if _, err := envs.NewWindow(table, n); err == nil {
			t.Errorf("windows of %d rows of 6 are accepted", n)
		}
	}
	if _, err := envs.NewWindow(tensor.Scalar(float32(1)), 1); err == nil {
		t.Error("windows of a scalar are accepted")
	}
	defer func() {
		if recover() == nil {
			t.Error("a window that begins before the table is given out")
		}
	}()
	w.At(1)
}

func TestCheckStep(t *testing.T) {
	s := spec(t)
	fresh := func() *envs.TimeStep {
		ts := envs.NewTimeStep(s)
		ts.SetWindow(1, s.Observation[1].Window, 5)
		for i := range ts.Mask.Bools() {
			ts.Mask.Bools()[i] = true
		}
		ts.Continue(0.5)
		return ts
	}
	nan := func() float64 { z := 0.0; return z / z }()
	cases := []struct {
		want   string
		prev   envs.StepType
		change func(*envs.TimeStep)
	}{
		{"", envs.First, func(*envs.TimeStep) {}},
		{"", envs.Last, (*envs.TimeStep).Restart},
		{"", envs.Mid, func(ts *envs.TimeStep) { ts.Terminate(1) }},
		{"", envs.Mid, func(ts *envs.TimeStep) { ts.Truncate(-1) }},
		{"follows", envs.Last, func(*envs.TimeStep) {}},
		{"follows", envs.Mid, (*envs.TimeStep).Restart},
		{"first step has reward", envs.Last, func(ts *envs.TimeStep) { ts.Restart(); ts.Reward = 1 }},
		{"reward 2", envs.Mid, func(ts *envs.TimeStep) { ts.Reward = 2 }},
		{"reward NaN", envs.Mid, func(ts *envs.TimeStep) { ts.Reward = nan }},
		{"discount 1.5", envs.Mid, func(ts *envs.TimeStep) { ts.Discount = 1.5 }},
		{"has discount 0", envs.Mid, func(ts *envs.TimeStep) { ts.Discount = 0 }},
		{"observation \"state\": element 1", envs.Mid, func(ts *envs.TimeStep) { ts.Obs[0].Float32s()[1] = 2 }},
		{"observation \"state\": element 0", envs.Mid, func(ts *envs.TimeStep) { ts.Obs[0].Float32s()[0] = float32(nan) }},
		{"ends with row 6", envs.Mid, func(ts *envs.TimeStep) { ts.Rows[1] = 6 }},
		{"ends with row 99", envs.Mid, func(ts *envs.TimeStep) { ts.Rows[1] = 99 }},
		{"head 1", envs.Mid, func(ts *envs.TimeStep) { clear(ts.Mask.Bools()[2:]) }},
		{"head 1", envs.Mid, func(ts *envs.TimeStep) { clear(ts.Mask.Bools()[2:]); ts.Truncate(1) }},
		{"", envs.Mid, func(ts *envs.TimeStep) { clear(ts.Mask.Bools()); ts.Terminate(1) }},
		{"elements", envs.Mid, func(ts *envs.TimeStep) { ts.Mask = ts.Mask.Rows(0, 2); ts.Terminate(1) }},
		{"no mask", envs.Mid, func(ts *envs.TimeStep) { ts.Mask = nil }},
		{"diagnostic \"b\"", envs.Mid, func(ts *envs.TimeStep) { ts.Info[1] = nan }},
		{"diagnostics", envs.Mid, func(ts *envs.TimeStep) { ts.Info = ts.Info[:1] }},
		{"observations", envs.Mid, func(ts *envs.TimeStep) { ts.Obs = ts.Obs[:1] }},
	}
	for i, c := range cases {
		ts := fresh()
		c.change(ts)
		err := envs.CheckStep(&s, c.prev, ts)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("case %d: %q is not said: %v", i, c.want, err)
		}
	}
	ts := fresh()
	if n := testing.AllocsPerRun(20, func() {
		if err := envs.CheckStep(&s, envs.Mid, ts); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("CheckStep allocates %g times", n)
	}
	s.Observation[1].Window.Table().Float32s()[29] = float32(nan)
	if n, err := envs.CheckTables(&s); err == nil || n != 3 {
		t.Errorf("NaN in the last row of a table: %d windows, %v", n, err)
	}
}

func TestTerminatedAndTruncated(t *testing.T) {
	ts := &envs.TimeStep{}
	for i, c := range []struct {
		set         func()
		term, trunc bool
	}{{ts.Restart, false, false}, {func() { ts.Continue(1) }, false, false}, {func() { ts.Terminate(1) }, true, false}, {func() { ts.Truncate(1) }, false, true}} {
		if c.set(); ts.Terminated() != c.term || ts.Truncated() != c.trunc {
			t.Errorf("case %d: terminated %t, truncated %t", i, ts.Terminated(), ts.Truncated())
		}
	}
}

// TestKinds opens environments from YAML; mistakes are errors with their place.
func TestKinds(t *testing.T) {
	kinds := []envs.Kind{corridor.Kind}
	cases := []struct{ yaml, want string }{
		{"env: {kind: corridor, cells: 5}", ""},
		{"env: {kind: corridor}", ""},
		{"env: {kind: coridor}", "run.yaml:1:13"},
		{"env: {kind: corridor, sells: 5}", "env.sells"},
		{"env: {kind: corridor, cells: 1}", "env.cells"},
	}
	for _, c := range cases {
		d, err := configs.Parse("run.yaml", []byte(c.yaml))
		if err != nil {
			t.Fatal(err)
		}
		var run struct {
			Env configs.Kinded `yaml:"env"`
		}
		if err := d.Decode(&run); err != nil {
			t.Fatal(err)
		}
		f, err := envs.Open(context.Background(), kinds, run.Env)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %q is not said: %v", c.yaml, c.want, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.yaml, err)
			continue
		}
		list, err := envs.Make(f, envs.Train, 3)
		if err != nil || len(list) != 3 {
			t.Errorf("%s: %d environments, %v", c.yaml, len(list), err)
		}
	}
}

var rootKey = rng.New(1)

// failing makes two environments and then no more.
type failing struct{ made []*corridor.Env }

func (*failing) Config() any  { return nil }
func (*failing) Close() error { return nil }
func (f *failing) New(envs.Split, int) (envs.Env, error) {
	if len(f.made) == 2 {
		return nil, errors.New("no more")
	}
	e, err := corridor.New(corridor.Defaults())
	f.made = append(f.made, e)
	return e, err
}

func TestMakeClosesWhatItMade(t *testing.T) {
	f := &failing{}
	_, err := envs.Make(f, envs.Test, 5)
	if err == nil || !strings.Contains(err.Error(), "environment 2 of 5 for test: no more") {
		t.Errorf("the error is %v", err)
	}
	for i, e := range f.made {
		if err := e.Reset(rootKey, envs.NewTimeStep(e.Spec())); !errors.Is(err, envs.ErrClosed) {
			t.Errorf("environment %d is not closed: %v", i, err)
		}
	}
	if len(f.made) != 2 {
		t.Errorf("%d were made", len(f.made))
	}
}
