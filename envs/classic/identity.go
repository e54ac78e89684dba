package classic

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The action spaces of the toys.
const (
	SpaceDiscrete      = "discrete"
	SpaceMultiDiscrete = "multi_discrete"
	SpaceMultiBinary   = "multi_binary"
	SpaceBox           = "box"
)

// IdentityConfig describes Stable-Baselines3's IdentityEnv, IdentityEnvBox,
// IdentityEnvMultiDiscrete and IdentityEnvMultiBinary: an action that equals the observation earns
// 1 and any other 0. Observations are drawn at every step.
type IdentityConfig struct {
	// MaxSteps is the time limit, 0 for none.
	MaxSteps int `yaml:"max_steps"`
	// Space is discrete, multi_discrete, multi_binary or box: of the actions and of the
	// observations.
	Space string `yaml:"space"`
	// Dims are the numbers of choices of the heads, one for discrete; for multi_binary the number
	// of bits, for box that of elements.
	Dims []int `yaml:"dims,flow"`
	// Low and High bound a box, and an action is right when no element is further than Eps away.
	Low  float64 `yaml:"low"`
	High float64 `yaml:"high"`
	Eps  float64 `yaml:"eps"`
}

// IdentityDefaults returns Stable-Baselines3's defaults, with the four choices that its tests use.
func IdentityDefaults() IdentityConfig {
	return IdentityConfig{MaxSteps: 100, Space: SpaceDiscrete, Dims: []int{4}, Low: -1, High: 1, Eps: 0.05}
}

// Validate implements configs.Validator.
func (c IdentityConfig) Validate() error {
	var p configs.Problems
	p.NonNegative("max_steps", c.MaxSteps)
	p.OneOf("space", c.Space, SpaceDiscrete, SpaceMultiDiscrete, SpaceMultiBinary, SpaceBox)
	checkDims(&p, c.Space, c.Dims)
	p.Check(c.Low < c.High && !math.IsInf(c.High-c.Low, 0), "low", "must be below high (%g) and finite, is %g", c.High, c.Low)
	p.NonNegative("eps", c.Eps)
	return p.Err()
}

// checkDims requires positive dims, and one of them where the space has one.
func checkDims(p *configs.Problems, space string, dims []int) {
	if space == SpaceMultiDiscrete {
		p.NotEmpty("dims", dims)
	} else {
		p.Check(len(dims) == 1, "dims", "has %d numbers, but %s takes one", len(dims), space)
	}
	for i, n := range dims {
		p.AtLeast(fmt.Sprintf("dims[%d]", i), n, 1)
	}
}

// choices returns the space of categorical actions that the words of a configuration mean.
func choices(space string, dims []int) envs.Space {
	switch space {
	case SpaceDiscrete:
		return envs.Discrete{N: dims[0]}
	case SpaceMultiDiscrete:
		return envs.MultiDiscrete{N: dims}
	}
	return envs.MultiBinary{N: dims[0]}
}

// identity has what is to be repeated.
type identity struct {
	target
	eps float64
}

// NewIdentity returns an identity environment.
func NewIdentity(c IdentityConfig) (*Env, error) {
	if err := valid("identity", c); err != nil {
		return nil, err
	}
	var space envs.Space = envs.NewBox(c.Low, c.High, c.Dims[0])
	eps := c.Eps
	if c.Space != SpaceBox {
		space, eps = choices(c.Space, c.Dims), 0
	}
	s := &identity{target: newTarget(space), eps: eps}
	return newEnv(s, envs.Spec{Name: "identity", Action: space, Reward: envs.Range{Low: 0, High: 1}}, space, c.MaxSteps), nil
}

func (s *identity) reset(r *rng.Stream) { s.draw(r) }

func (s *identity) step(action *tensor.Tensor, r *rng.Stream) (float64, bool) {
	reward := s.reward(action, s.eps)
	s.draw(r)
	return reward, false
}

func (s *identity) observe(ts *envs.TimeStep) { s.write(ts.Obs[0]) }
func (s *identity) state() []float64          { return s.numbers }

func (s *identity) check() error {
	s.write(s.drawn)
	if err := s.space.Check(s.drawn); err != nil {
		return fmt.Errorf("what is to be repeated: %w", err)
	}
	return nil
}

// target is an element of a space that an action is to be equal to.
type target struct {
	space envs.Space
	// numbers are its elements; drawn is where the space writes them.
	numbers []float64
	drawn   *tensor.Tensor
}

func newTarget(space envs.Space) target {
	t := tensor.New(space.DType(), space.Shape()...)
	return target{space: space, drawn: t, numbers: make([]float64, t.Len())}
}

// draw chooses another element, uniformly.
func (t *target) draw(r *rng.Stream) {
	t.space.Sample(r, nil, t.drawn)
	for i := range t.numbers {
		t.numbers[i] = element(t.drawn, i)
	}
}

// reward is 1 when no element of the action is further than eps away, else 0.
func (t *target) reward(action *tensor.Tensor, eps float64) float64 {
	for i, want := range t.numbers {
		got := element(action, i)
		if math.Abs(got-want) > eps {
			return 0
		}
	}
	return 1
}

// element reads a number of any element type of an action.
func element(t *tensor.Tensor, i int) float64 {
	switch t.DType() {
	case tensor.Int64:
		return float64(t.Int64s()[i])
	case tensor.Bool:
		return float64(t.Bytes()[i])
	}
	return float64(t.Float32s()[i])
}

// write writes the element into a tensor of the space. Numbers of a damaged state may become
// anything.
func (t *target) write(dst *tensor.Tensor) {
	for i, v := range t.numbers {
		switch dst.DType() {
		case tensor.Int64:
			dst.Int64s()[i] = int64(v)
		case tensor.Bool:
			dst.Bytes()[i] = uint8(v)
		default:
			dst.Float32s()[i] = float32(v)
		}
	}
}
