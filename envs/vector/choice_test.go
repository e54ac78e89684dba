package vector_test

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// miscounted shows a choice that there is not.
type miscounted struct {
	envs.Env
	choice int64
}

func (e *miscounted) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	err := e.Env.Step(a, ts)
	x := ts.Obs[0].Int64s()
	x[len(x)-1] = e.choice
	return err
}

// TestChoicesOutsideAreErrors: what a network takes for an index is checked at every step, whatever
// the options say.
func TestChoicesOutsideAreErrors(t *testing.T) {
	ran := 0
	for _, c := range []struct {
		space  string
		dims   []int
		choice int64
		want   string
	}{
		{classic.SpaceDiscrete, []int{4}, 3, ""},
		{classic.SpaceDiscrete, []int{4}, -1, "of discrete(4): -1, expected 0 to 3"},
		{classic.SpaceDiscrete, []int{4}, 4, "of discrete(4): 4, expected 0 to 3"},
		{classic.SpaceMultiDiscrete, []int{4, 3}, 2, ""},
		{classic.SpaceMultiDiscrete, []int{4, 3}, -1, "element 1 is -1, expected 0 to 2"},
		{classic.SpaceMultiDiscrete, []int{4, 3}, 3, "element 1 is 3, expected 0 to 2"},
	} {
		config := classic.IdentityDefaults()
		config.Space, config.Dims = c.space, c.dims
		e, err := classic.NewIdentity(config)
		if err != nil {
			t.Fatal(err)
		}
		v := open(t, []envs.Env{&miscounted{e, c.choice}}, vector.Options{})
		if err := v.Reset(key); err != nil {
			t.Fatal(err)
		}
		err = v.Step(v.Batch().Actions)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %v, choice %d: error %v, want %q", c.space, c.dims, c.choice, err, c.want)
		}
		ran++
	}
	if ran != 6 {
		t.Errorf("%d cases ran", ran)
	}
}
