package classic

import (
	"errors"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// InvalidActionConfig describes SB3-contrib's InvalidActionEnvDiscrete,
// InvalidActionEnvMultiDiscrete and InvalidActionEnvMultiBinary: the identity toy, where the mask
// excludes some of the wrong choices at random at every step.
type InvalidActionConfig struct {
	// MaxSteps is the time limit, 0 for none.
	MaxSteps int `yaml:"max_steps"`
	// Space is discrete, multi_discrete or multi_binary.
	Space string `yaml:"space"`
	// Dims are the numbers of choices of the heads, one for discrete; for multi_binary the number
	// of bits.
	Dims []int `yaml:"dims,flow"`
	// Invalid is the number of choices, over all heads, that the mask excludes. Each head keeps the
	// right one.
	Invalid int `yaml:"invalid"`
}

// InvalidActionDefaults returns what the learning test of SB3-contrib uses: 70 choices, 55 of which
// are excluded.
func InvalidActionDefaults() InvalidActionConfig {
	return InvalidActionConfig{MaxSteps: 100, Space: SpaceDiscrete, Dims: []int{70}, Invalid: 55}
}

// Validate implements configs.Validator.
func (c InvalidActionConfig) Validate() error {
	var p configs.Problems
	p.NonNegative("max_steps", c.MaxSteps)
	p.OneOf("space", c.Space, SpaceDiscrete, SpaceMultiDiscrete, SpaceMultiBinary)
	checkDims(&p, c.Space, c.Dims)
	if p.Err() == nil {
		space := choices(c.Space, c.Dims)
		wrong := envs.MaskLen(space) - len(envs.Heads(space))
		p.InRange("invalid", c.Invalid, 0, float64(wrong))
	}
	return p.Err()
}

// invalidAction has what is to be repeated and what is excluded.
type invalidAction struct {
	target
	heads   []int
	invalid int
	// all has the target's numbers and then an element of the mask for each choice, 1 where it is
	// valid. wrong are the places of the choices that may be excluded.
	all   []float64
	wrong []int
}

// NewInvalidAction returns an identity environment with masks.
func NewInvalidAction(c InvalidActionConfig) (*Env, error) {
	if err := valid("invalid_action", c); err != nil {
		return nil, err
	}
	space := choices(c.Space, c.Dims)
	s := &invalidAction{target: newTarget(space), heads: envs.Heads(space), invalid: c.Invalid}
	n, masks := len(s.heads), envs.MaskLen(space)
	s.all = make([]float64, n+masks)
	s.numbers = s.all[:n]
	s.wrong = make([]int, 0, masks)
	return newEnv(s, envs.Spec{Name: "invalid_action", Action: space, Masked: true, Reward: envs.Range{Low: 0, High: 1}}, space, c.MaxSteps), nil
}

func (s *invalidAction) reset(r *rng.Stream) { s.next(r) }

func (s *invalidAction) step(action *tensor.Tensor, r *rng.Stream) (float64, bool) {
	reward := s.reward(action, 0)
	s.next(r)
	return reward, false
}

// next draws what is to be repeated, and then which of the other choices are excluded, without
// replacement.
func (s *invalidAction) next(r *rng.Stream) {
	s.draw(r)
	mask := s.all[len(s.numbers):]
	for i := range mask {
		mask[i] = 1
	}
	s.wrong = s.wrong[:0]
	first := 0
	for h, n := range s.heads {
		for k := range n {
			if k != int(s.numbers[h]) {
				s.wrong = append(s.wrong, first+k)
			}
		}
		first += n
	}
	for i := range s.invalid {
		k := i + r.IntN(len(s.wrong)-i)
		s.wrong[i], s.wrong[k] = s.wrong[k], s.wrong[i]
		mask[s.wrong[i]] = 0
	}
}

func (s *invalidAction) observe(ts *envs.TimeStep) {
	s.write(ts.Obs[0])
	mask := ts.Mask.Bools()
	for i := range mask {
		mask[i] = s.all[len(s.numbers)+i] != 0
	}
}

func (s *invalidAction) state() []float64 { return s.all }

func (s *invalidAction) check() error {
	excluded, first := 0, 0
	for h, n := range s.heads {
		right := s.numbers[h]
		if !(right >= 0 && right < float64(n)) || s.all[len(s.numbers)+first+int(right)] != 1 {
			return errors.New("what is to be repeated is not a valid choice")
		}
		first += n
	}
	for _, v := range s.all[len(s.numbers):] {
		if v == 0 {
			excluded++
		}
	}
	if excluded != s.invalid {
		return errors.New("the number of excluded choices is another")
	}
	return nil
}
