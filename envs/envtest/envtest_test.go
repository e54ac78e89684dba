package envtest_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// hooked is a corridor that breaks the contract where its hooks say so.
type hooked struct {
	*corridor.Env
	spec  func(*envs.Spec)
	reset func(e *hooked, key rng.Key, ts *envs.TimeStep) error
	step  func(e *hooked, a *tensor.Tensor, ts *envs.TimeStep) error
	save  func() ([]byte, error)
	load  func(e *hooked, s []byte, ts *envs.TimeStep) error
	n     int
	keep  []byte
}

func (h *hooked) Spec() envs.Spec {
	s := h.Env.Spec()
	if h.spec != nil {
		h.spec(&s)
	}
	return s
}

func (h *hooked) Reset(key rng.Key, ts *envs.TimeStep) error {
	if h.reset != nil {
		return h.reset(h, key, ts)
	}
	return h.Env.Reset(key, ts)
}

func (h *hooked) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	if h.step != nil {
		return h.step(h, a, ts)
	}
	return h.Env.Step(a, ts)
}

func (h *hooked) SaveState() ([]byte, error) {
	if h.save != nil {
		return h.save()
	}
	return h.Env.SaveState()
}

func (h *hooked) LoadState(s []byte, ts *envs.TimeStep) error {
	if h.load != nil {
		return h.load(h, s, ts)
	}
	return h.Env.LoadState(s, ts)
}

// after takes the corridor's step and then spoils it.
func after(spoil func(h *hooked, ts *envs.TimeStep)) func(*hooked) {
	return func(h *hooked) {
		h.step = func(h *hooked, a *tensor.Tensor, ts *envs.TimeStep) error {
			err := h.Env.Step(a, ts)
			if err == nil {
				h.n++
				spoil(h, ts)
			}
			return err
		}
	}
}

var count int // of all environments; makes them depend on it

// TestBreaches breaks every part of the contract once: each breach is found, by the part of the
// suite that is responsible.
func TestBreaches(t *testing.T) {
	cases := []struct {
		name, want string
		change     func(*hooked)
	}{
		{"spec without a name", "spec: ", func(h *hooked) { h.spec = func(s *envs.Spec) { s.Name = "" } }},
		{"observation out of bounds", "values: ", after(func(_ *hooked, ts *envs.TimeStep) { ts.Obs[0].Float32s()[0] += 2 })},
		{"NaN", "values: ", after(func(_ *hooked, ts *envs.TimeStep) { ts.Obs[0].Float32s()[0] = float32(math.NaN()) })},
		{"reward out of bounds", "values: ", after(func(_ *hooked, ts *envs.TimeStep) { ts.Reward = -3 })},
		{"another tensor", "values: ", after(func(_ *hooked, ts *envs.TimeStep) { ts.Obs[0] = ts.Obs[0].Clone() })},
		{"no valid action", "values: ", after(func(h *hooked, ts *envs.TimeStep) {
			if h.n == 50 {
				clear(ts.Mask.Bools())
			}
		})},
		{"reward in the first step", "values: ", func(h *hooked) {
			h.reset = func(h *hooked, key rng.Key, ts *envs.TimeStep) error {
				err := h.Env.Reset(key, ts)
				ts.Reward = 1
				return err
			}
		}},
		{"first in the middle", "values: ", after(func(h *hooked, ts *envs.TimeStep) {
			if h.n == 20 {
				ts.Restart()
			}
		})},
		{"episodes longer than the spec says", "values: ", func(h *hooked) { h.spec = func(s *envs.Spec) { s.MaxSteps = 2 } }},
		{"never ends", "values: no episode ended", after(func(h *hooked, ts *envs.TimeStep) {
			if ts.Type == envs.Last {
				_ = h.Env.Reset(rng.New(3), ts)
				ts.Continue(0)
			}
		})},
		{"depends on the process", "determinism: ", func(h *hooked) {
			count++
			me := count
			after(func(h *hooked, ts *envs.TimeStep) { ts.Reward = 1 / float64(1+me) })(h)
		}},
		{"reward is not written", "determinism: ", func(h *hooked) {
			h.step = func(h *hooked, a *tensor.Tensor, ts *envs.TimeStep) error {
				before := ts.Discount
				err := h.Env.Step(a, ts)
				if ts.Type == envs.Mid {
					ts.Discount = before
				}
				return err
			}
		}},
		{"observation is not written", "determinism: ", func(h *hooked) {
			h.step = func(h *hooked, a *tensor.Tensor, ts *envs.TimeStep) error {
				before := ts.Obs[0].Float32s()[0]
				err := h.Env.Step(a, ts)
				if h.n++; h.n%7 == 0 {
					ts.Obs[0].Float32s()[0] = before
				}
				return err
			}
		}},
		{"not random", "keys: nine keys", func(h *hooked) {
			h.reset = func(h *hooked, _ rng.Key, ts *envs.TimeStep) error { return h.Env.Reset(rng.New(1), ts) }
		}},
		{"random without saying so", "keys: keys change", func(h *hooked) { h.spec = func(s *envs.Spec) { s.Random = false } }},
		{"accepts wrong actions", "actions: ", func(h *hooked) {
			h.step = func(h *hooked, a *tensor.Tensor, ts *envs.TimeStep) error {
				err := h.Env.Step(a, ts)
				var bad *envs.ActionError
				if errors.As(err, &bad) {
					return nil
				}
				return err
			}
		}},
		{"untyped errors", "actions: ", func(h *hooked) {
			h.step = func(h *hooked, a *tensor.Tensor, ts *envs.TimeStep) error {
				if err := h.Env.Step(a, ts); err != nil {
					return errors.New(err.Error())
				}
				return nil
			}
		}},
		{"a wrong action moves", "actions: after", func(h *hooked) {
			h.step = func(h *hooked, a *tensor.Tensor, ts *envs.TimeStep) error {
				err := h.Env.Step(a, ts)
				if err != nil {
					_ = h.Env.Step(tensor.Scalar(int64(corridor.Right)), ts)
				}
				return err
			}
		}},
		{"refuses masked actions", "masked actions: ", func(h *hooked) {
			h.step = func(h *hooked, a *tensor.Tensor, ts *envs.TimeStep) error {
				if err := h.Env.Step(a, ts); err != nil {
					return err
				}
				if h.keep != nil && h.keep[corridor.Left] == 0 && a.Int64s()[0] == corridor.Left {
					return errors.New("masked")
				}
				h.keep = append(h.keep[:0], ts.Mask.Bytes()...)
				return nil
			}
			h.reset = func(h *hooked, key rng.Key, ts *envs.TimeStep) error {
				err := h.Env.Reset(key, ts)
				h.keep = append(h.keep[:0], ts.Mask.Bytes()...)
				return err
			}
		}},
		{"steps after the last", "life cycle: Step after the last", func(h *hooked) {
			h.step = func(h *hooked, a *tensor.Tensor, ts *envs.TimeStep) error {
				if h.n > 0 {
					h.n = 0
					return nil
				}
				err := h.Env.Step(a, ts)
				if ts.Type == envs.Last && err == nil {
					h.n = 1
				}
				return err
			}
			h.reset = func(h *hooked, key rng.Key, ts *envs.TimeStep) error { h.n = 0; return h.Env.Reset(key, ts) }
		}},
		{"remembers the episode before", "life cycle: ", func(h *hooked) {
			after(func(h *hooked, ts *envs.TimeStep) { ts.Reward = 1 / float64(1+h.n) })(h)
		}},
		{"allocates", "allocations: ", after(func(h *hooked, _ *envs.TimeStep) { h.keep = make([]byte, 100) })},
		{"saves too little", "saving: ", func(h *hooked) { h.save = func() ([]byte, error) { return []byte(`{"at":3}`), nil } }},
		{"loads anything", "saving: ", func(h *hooked) {
			h.load = func(h *hooked, s []byte, ts *envs.TimeStep) error {
				if err := h.Env.LoadState(s, ts); err != nil {
					return nil
				}
				return nil
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := envtest.Check(func() (envs.Env, error) {
				e, err := corridor.New(corridor.Config{Cells: 9})
				h := &hooked{Env: e}
				c.change(h)
				return h, err
			}, envtest.Options{Steps: 300})
			if err == nil {
				t.Fatal("nothing is found")
			}
			if !strings.HasPrefix(err.Error(), c.want) && !strings.Contains(err.Error(), "\n"+c.want) {
				t.Errorf("%q is not said: %v", c.want, err)
			}
		})
	}
	if len(cases) != 24 {
		t.Errorf("%d breaches", len(cases))
	}
}

// TestSoundEnvironment passes, with a policy of its own and other forms of actions.
func TestSoundEnvironment(t *testing.T) {
	r := envtest.Run(t, func() (envs.Env, error) { return corridor.New(corridor.Defaults()) }, envtest.Options{
		Steps: 300, Policy: func(_ *rng.Stream, _ *envs.TimeStep, a *tensor.Tensor) { a.Int64s()[0] = corridor.Right },
	})
	if r.Episodes < 40 {
		t.Errorf("%d episodes in 300 steps to the right", r.Episodes)
	}
}
