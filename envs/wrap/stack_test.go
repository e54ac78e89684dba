package wrap_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// slider is moved by two numbers and observes its place, bounds that differ by component, and the
// count of its steps; it falls off the edge or is stopped.
type slider struct {
	x       [2]float64
	n       int64
	running bool
	closed  bool
	last    []float32
	random  rng.Stream
}

var sliderSpec = envs.Spec{
	Name:        "slider",
	Observation: envs.Dict{{Name: "place", Space: envs.Box{Of: tensor.Float32, Dims: []int{2}, Low: []float64{-3, 1}, High: []float64{3, 9}}}, {Name: "count", Space: envs.Discrete{N: 100}}},
	Action:      envs.Box{Of: tensor.Float32, Dims: []int{2}, Low: []float64{-1, 0}, High: []float64{3, 0.5}},
	Reward:      envs.Range{Low: -10, High: 10}, MaxSteps: 30, Random: true,
}

func (e *slider) Spec() envs.Spec { return sliderSpec }

func (e *slider) Reset(key rng.Key, ts *envs.TimeStep) error {
	if e.closed {
		return envs.ErrClosed
	}
	e.random.Seed(key)
	e.x, e.n, e.running = [2]float64{e.random.Float64(), 5}, 0, true
	e.show(ts)
	ts.Restart()
	return nil
}

func (e *slider) show(ts *envs.TimeStep) {
	copy(ts.Obs[0].Float32s(), []float32{float32(e.x[0]), float32(e.x[1])})
	ts.Obs[1].Int64s()[0] = e.n
}

func (e *slider) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	switch {
	case e.closed:
		return envs.ErrClosed
	case !e.running:
		return envs.ErrNoEpisode
	}
	if err := envs.CheckAction(&sliderSpec, a); err != nil {
		return err
	}
	e.last = append(e.last[:0], a.Float32s()...)
	e.x[0] = min(max(e.x[0]+float64(e.last[0])-1, -3), 3)
	e.x[1] = min(max(e.x[1]+float64(e.last[1])-0.25, 1), 9)
	e.n++
	e.show(ts)
	e.running = math.Abs(e.x[0]) < 3 && e.n < 30
	switch {
	case math.Abs(e.x[0]) >= 3:
		ts.Terminate(e.x[0])
	case e.n == 30:
		ts.Truncate(e.x[0])
	default:
		ts.Continue(e.x[0])
	}
	return nil
}

func (e *slider) Close() error { e.closed = true; return nil }

func (e *slider) SaveState() ([]byte, error) {
	if !e.running {
		return nil, envs.ErrNoEpisode
	}
	return fmt.Appendf(nil, "%x %x %d", math.Float64bits(e.x[0]), math.Float64bits(e.x[1]), e.n), nil
}

func (e *slider) LoadState(s []byte, ts *envs.TimeStep) error {
	var a, b uint64
	if _, err := fmt.Sscanf(string(s), "%x %x %d", &a, &b, &e.n); err != nil {
		return err
	}
	e.x, e.running = [2]float64{math.Float64frombits(a), math.Float64frombits(b)}, true
	e.show(ts)
	if ts.Restart(); e.n > 0 {
		ts.Continue(0)
	}
	return nil
}

type sliders struct{}

func (sliders) Config() any                           { return nil }
func (sliders) New(envs.Split, int) (envs.Env, error) { return &slider{}, nil }
func (sliders) Close() error                          { return nil }

// TestWrappedContract runs the suite over every wrapper that a document can ask for, and over all
// together.
func TestWrappedContract(t *testing.T) {
	base := wrap.Defaults()
	stack := func(n int, initial string, flat bool) wrap.Config {
		c := base
		c.FrameStack = wrap.Frames{Frames: n, Initial: initial, Flat: flat}
		return c
	}
	all := stack(3, wrap.InitialZero, false)
	all.TimeLimit, all.RescaleAction, all.ClipAction = 12, true, true
	rescale, clip, skill, sphere := base, base, base, base
	skill.Skill, sphere.Skill = wrap.Skills{Dim: 4}, wrap.Skills{Dim: 3, Kind: wrap.Sphere}
	all.Skill = skill.Skill
	rescale.RescaleAction, clip.ClipAction = true, true
	ran := 0
	for name, c := range sorted.All(map[string]wrap.Config{
		"stack": stack(4, wrap.InitialFirst, true), "stack of zeros": stack(2, wrap.InitialZero, true), "stack on an axis": stack(3, wrap.InitialFirst, false), "rescale": rescale, "clip": clip, "skill": skill, "sphere": sphere, "all": all,
	}) {
		t.Run(name, func(t *testing.T) {
			f, err := wrap.Apply(sliders{}, c)
			if err != nil {
				t.Fatal(err)
			}
			if r := envtest.Run(t, func() (envs.Env, error) { return f.New(envs.Train, 0) }, envtest.Options{Steps: 400}); r.Saved < 15 {
				t.Errorf("too little was checked: %+v", r)
			}
			ran++
		})
	}
	t.Run("corridor", func(t *testing.T) {
		envtest.Run(t, func() (envs.Env, error) {
			return wrap.NewFrameStack(open(t, 9), wrap.Frames{Frames: 3, Initial: wrap.InitialFirst})
		}, envtest.Options{Steps: 400})
		ran++
	})
	if ran != 9 {
		t.Errorf("%d environments", ran)
	}
	if f, err := wrap.Apply(sliders{}, base); err != nil || f != (sliders{}) {
		t.Errorf("without wrappers: %v, %v", f, err)
	}
}

// TestStackOrder compares stacks with the frames that they are made of, the oldest first, in the
// first episode and after it.
func TestStackOrder(t *testing.T) {
	compared := 0
	for _, c := range []wrap.Frames{{Frames: 3, Initial: wrap.InitialFirst, Flat: true}, {Frames: 3, Initial: wrap.InitialZero}} {
		e, err := wrap.NewFrameStack(open(t, 6), c)
		if err != nil {
			t.Fatal(err)
		}
		shape := []int{3, 1}
		if c.Flat {
			shape = []int{3}
		}
		if got := e.Spec().Observation[0].Space.Shape(); !slices.Equal(got, shape) {
			t.Errorf("shape %v, expected %v", got, shape)
		}
		ts, plain, raw := envs.NewTimeStep(e.Spec()), open(t, 6), envs.NewTimeStep(open(t, 6).Spec())
		for episode := range 3 {
			key := rng.New(5).Split("episode", episode)
			if err := errors.Join(e.Reset(key, ts), plain.Reset(key, raw)); err != nil {
				t.Fatal(err)
			}
			first := raw.Obs[0].Float32s()[0]
			frames := []float32{first, first, first}
			if c.Initial == wrap.InitialZero {
				frames[0], frames[1] = 0, 0
			}
			for {
				if got := ts.Obs[0].Float32s(); !slices.Equal(got, frames) {
					t.Fatalf("%+v: %v, expected %v", c, got, frames)
				}
				compared++
				if ts.Type == envs.Last {
					break
				}
				a := tensor.Scalar(int64(corridor.Right))
				if err := errors.Join(e.Step(a, ts), plain.Step(a, raw)); err != nil {
					t.Fatal(err)
				}
				frames = append(frames[1:], raw.Obs[0].Float32s()[0])
			}
		}
	}
	if compared < 12 {
		t.Errorf("%d stacks were compared", compared)
	}
}

// TestWindowsAreNotStacked leaves a window over a table what it is.
func TestWindowsAreNotStacked(t *testing.T) {
	const bars = 30
	m := &trading.Market{Assets: []string{"A"}, Features: []string{"f"}, X: make([]float32, bars), Open: make([]float64, bars), Close: make([]float64, bars), Tradable: make([]trading.Sides, bars)}
	for b := range bars {
		m.Dates = append(m.Dates, time.Date(2020, 1, 1+b, 0, 0, 0, 0, time.UTC))
		m.X[b], m.Open[b], m.Close[b], m.Tradable[b] = float32(b), 1, 1, trading.Both
	}
	c := trading.Defaults()
	c.Window = 5
	source, err := trading.NewSource(m, c)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := source.Env(trading.Range{First: 0, Last: bars - 1})
	if err != nil {
		t.Fatal(err)
	}
	e, err := wrap.NewFrameStack(plain, wrap.Frames{Frames: 2, Initial: wrap.InitialFirst})
	if err != nil {
		t.Fatal(err)
	}
	spec, inner := e.Spec(), plain.Spec()
	if spec.Observation[0].Window != inner.Observation[0].Window || !slices.Equal(spec.Observation[1].Space.Shape(), []int{2, 1}) {
		t.Errorf("%v", spec.Observation)
	}
	ts := envs.NewTimeStep(spec)
	if err := e.Reset(rng.New(1), ts); err != nil {
		t.Fatal(err)
	}
	if err := envs.CheckStep(&spec, envs.Last, ts); err != nil {
		t.Error(err)
	}
	if ts.Rows[0] != 4 || ts.Obs[0] != spec.Observation[0].Window.At(4) {
		t.Errorf("the window ends with row %d", ts.Rows[0])
	}
}

// TestActions stretches and clips component by component.
func TestActions(t *testing.T) {
	inner := &slider{}
	rescaled, err := wrap.NewRescaleAction(inner)
	if err != nil {
		t.Fatal(err)
	}
	clipped, err := wrap.NewClipAction(inner)
	if err != nil {
		t.Fatal(err)
	}
	both, err := wrap.NewClipAction(rescaled)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		e        envs.Env
		in, want []float32
	}{
		{rescaled, []float32{-1, -1}, []float32{-1, 0}}, {rescaled, []float32{1, 1}, []float32{3, 0.5}}, {rescaled, []float32{0, 0.5}, []float32{1, 0.375}},
		{clipped, []float32{-7, 0.25}, []float32{-1, 0.25}}, {clipped, []float32{1.5, 9}, []float32{1.5, 0.5}},
		{both, []float32{-7, 9}, []float32{-1, 0.5}}, {both, []float32{0, -0.5}, []float32{1, 0.125}},
	}
	for _, c := range cases {
		ts := envs.NewTimeStep(c.e.Spec())
		if err := c.e.Reset(rng.New(1), ts); err != nil {
			t.Fatal(err)
		}
		if err := c.e.Step(tensor.Of(c.in, 2), ts); err != nil || !slices.Equal(inner.last, c.want) {
			t.Errorf("%T of %v: %v, %v, expected %v", c.e, c.in, inner.last, err, c.want)
		}
	}
	if s := rescaled.Spec().Action.String(); !strings.Contains(s, "[-1, 1]") {
		t.Error(s)
	}
	var bad *envs.ActionError
	ts := envs.NewTimeStep(rescaled.Spec())
	for _, c := range []struct {
		e envs.Env
		x float32
	}{{rescaled, 1.01}, {clipped, float32(math.NaN())}} {
		if err := c.e.Step(tensor.Of([]float32{0, c.x}, 2), ts); !errors.As(err, &bad) {
			t.Errorf("%T of %g: %v", c.e, c.x, err)
		}
	}
}

type corridors struct{}

func (corridors) Config() any                           { return nil }
func (corridors) New(envs.Split, int) (envs.Env, error) { return corridor.New(corridor.Defaults()) }
func (corridors) Close() error                          { return nil }

// TestMisfits names the key of the document and the environment's side.
func TestMisfits(t *testing.T) {
	for want, change := range sorted.All(map[string]func(*wrap.Config){
		"wrappers.rescale_action: rescale actions: the actions of corridor are discrete(2)": func(c *wrap.Config) { c.RescaleAction = true },
		"wrappers.clip_action: clip actions: the actions of corridor":                       func(c *wrap.Config) { c.ClipAction = true },
		"time_limit: must not be negative":                                                  func(c *wrap.Config) { c.TimeLimit = -1 },
		"frame_stack.initial: must be one of":                                               func(c *wrap.Config) { c.FrameStack = wrap.Frames{Frames: 2, Initial: "firts"} },
	}) {
		c := wrap.Defaults()
		change(&c)
		if _, err := wrap.Apply(corridors{}, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if _, err := wrap.NewFrameStack(open(t, 3), wrap.Frames{Frames: 1, Initial: wrap.InitialFirst}); err == nil {
		t.Error("a stack of one frame is accepted")
	}
	if err := configs.Validate(wrap.Defaults()); err != nil {
		t.Error(err)
	}
}
