package classic

import (
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// CartPoleConfig describes CartPole-v1: a pole on a cart is kept upright by pushing the cart to the
// left (0) or right (1).
type CartPoleConfig struct {
	// MaxSteps is the time limit, 0 for none.
	MaxSteps int `yaml:"max_steps"`
	// SuttonBartoReward gives 0 for a step and −1 for the one that ends the episode, in place of 1
	// for every step.
	SuttonBartoReward bool `yaml:"sutton_barto_reward"`
	// Decoys is a number of further actions that the mask excludes always: CartPole for learners
	// that respect masks. Taken all the same, one pushes to the left. CartPole-v1 has none, and no
	// mask.
	Decoys int `yaml:"decoys"`
}

// CartPoleDefaults returns CartPole-v1.
func CartPoleDefaults() CartPoleConfig { return CartPoleConfig{MaxSteps: 500} }

// Validate implements configs.Validator.
func (c CartPoleConfig) Validate() error {
	var p configs.Problems
	p.NonNegative("max_steps", c.MaxSteps)
	p.NonNegative("decoys", c.Decoys)
	return p.Err()
}

// The constants of CartPole. Lengths are in m, masses in kg, times in s.
const (
	cartGravity    = 9.8
	cartPoleMass   = 0.1
	cartTotalMass  = 1.1
	cartPoleLength = 0.5 // half of the pole's
	cartForce      = 10.0
	cartInterval   = 0.02
	cartLimit      = 2.4
	cartAngle      = 12 * 2 * math.Pi / 360
)

// cartPole has position, velocity, angle and angular velocity.
type cartPole struct {
	s           [4]float64
	reward, end float64
}

// NewCartPole returns CartPole. An observation is the state: position (m), velocity, angle from the
// vertical (rad), angular velocity.
func NewCartPole(c CartPoleConfig) (*Env, error) {
	if err := valid("cartpole", c); err != nil {
		return nil, err
	}
	sys := &cartPole{reward: 1, end: 1}
	if c.SuttonBartoReward {
		sys.reward, sys.end = 0, -1
	}
	// The bounds are twice those of an episode, so that the state that ends one lies within.
	observation := symmetric(2*cartLimit, math.Inf(1), 2*cartAngle, math.Inf(1))
	return newEnv(sys, envs.Spec{Name: "cartpole", Action: envs.Discrete{N: 2 + c.Decoys}, Masked: c.Decoys > 0, Reward: envs.Range{Low: sys.end, High: sys.reward}}, observation, c.MaxSteps), nil
}

func (s *cartPole) reset(r *rng.Stream) {
	for i := range s.s {
		s.s[i] = uniform(r, -0.05, 0.05)
	}
}

func (s *cartPole) step(action *tensor.Tensor, _ *rng.Stream) (float64, bool) {
	x, v, angle, spin := s.s[0], s.s[1], s.s[2], s.s[3]
	force := -cartForce
	if action.Int64s()[0] == 1 {
		force = cartForce
	}
	sin, cos := math.Sincos(angle)
	const massLength = cartPoleMass * cartPoleLength
	temp := (force + massLength*(spin*spin)*sin) / cartTotalMass
	angular := (cartGravity*sin - cos*temp) / (cartPoleLength * (4.0/3.0 - cartPoleMass*(cos*cos)/cartTotalMass))
	linear := temp - massLength*angular*cos/cartTotalMass
	// Explicit Euler: positions move by the velocities before the step.
	x += cartInterval * v
	v += cartInterval * linear
	angle += cartInterval * spin
	spin += cartInterval * angular
	s.s = [4]float64{x, v, angle, spin}
	if x < -cartLimit || x > cartLimit || angle < -cartAngle || angle > cartAngle {
		return s.end, true
	}
	return s.reward, false
}

func (s *cartPole) observe(ts *envs.TimeStep) {
	o := ts.Obs[0].Float32s()
	_ = o[3]
	for i, v := range s.s {
		o[i] = float32(v)
	}
	if ts.Mask != nil {
		for i := range ts.Mask.Bools() {
			ts.Mask.Bools()[i] = i < 2
		}
	}
}

func (s *cartPole) state() []float64 { return s.s[:] }

func (s *cartPole) check() error {
	return within(s.s[:], []float64{cartLimit, math.MaxFloat32, cartAngle, math.MaxFloat32})
}
