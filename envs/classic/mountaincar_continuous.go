package classic

import (
	"math"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MountainCarContinuousDefaults returns MountainCarContinuous-v0: the mountain car with a force
// between −1 and 1, which costs.
func MountainCarContinuousDefaults() MountainCarConfig { return MountainCarConfig{MaxSteps: 999} }

// The car with continuous actions.
const (
	carPower          = 0.0015
	carContinuousGoal = 0.45
	carReward         = 100.0
	carActionCost     = 0.1
)

// mountainCarContinuous has position and velocity, which are float32 numbers.
type mountainCarContinuous struct {
	s    [2]float64
	goal float64
}

// NewMountainCarContinuous returns MountainCarContinuous. An observation is position and velocity;
// a step earns −0.1·a², and 100 more at the goal.
func NewMountainCarContinuous(c MountainCarConfig) (*Env, error) {
	if err := valid("mountaincar_continuous", c); err != nil {
		return nil, err
	}
	spec := envs.Spec{Name: "mountaincar_continuous", Action: envs.NewBox(-1, 1, 1), Reward: envs.Range{Low: -carActionCost, High: carReward}}
	return newEnv(&mountainCarContinuous{goal: c.GoalVelocity}, spec, hillBox(), c.MaxSteps), nil
}

func (s *mountainCarContinuous) reset(r *rng.Stream) {
	s.s = [2]float64{float64(float32(uniform(r, hillStartLow, hillStartHigh))), 0}
}

func (s *mountainCarContinuous) step(action *tensor.Tensor, _ *rng.Stream) (float64, bool) {
	x, v := float32(s.s[0]), float32(s.s[1])
	a := action.Float32s()[0]
	// Every sum and product is rounded to float32, as NumPy does with a float32 and a Python
	// number; only cos is not.
	push := float32(a * carPower)
	pull := float32(hillGravity * math.Cos(float64(3*x)))
	v += float32(push - pull)
	v = min(max(v, -hillSpeed), hillSpeed)
	x = min(max(x+v, hillLeft), hillRight)
	if x == hillLeft && v < 0 {
		v = 0
	}
	s.s = [2]float64{float64(x), float64(v)}
	reward := -(float64(a) * float64(a)) * carActionCost
	if terminated := x >= carContinuousGoal && float64(v) >= s.goal; terminated {
		return carReward + reward, true
	}
	return reward, false
}

func (s *mountainCarContinuous) observe(ts *envs.TimeStep) {
	o := ts.Obs[0].Float32s()
	o[0], o[1] = float32(s.s[0]), float32(s.s[1])
}

func (s *mountainCarContinuous) state() []float64 { return s.s[:] }

func (s *mountainCarContinuous) check() error {
	// Bounds of float32 numbers, which may lie beyond those of float64.
	return checkHill([2]float64{min(s.s[0], hillRight), min(max(s.s[1], -hillSpeed), hillSpeed)})
}
