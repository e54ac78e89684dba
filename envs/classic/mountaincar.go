package classic

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MountainCarConfig describes MountainCar-v0, a car too weak for the hill that swings itself up by
// pushing to the left (0), not at all (1) or to the right (2), and MountainCarContinuous-v0.
type MountainCarConfig struct {
	// MaxSteps is the time limit, 0 for none.
	MaxSteps int `yaml:"max_steps"`
	// GoalVelocity is the velocity that the car must have at the goal.
	GoalVelocity float64 `yaml:"goal_velocity"`
}

// MountainCarDefaults returns MountainCar-v0.
func MountainCarDefaults() MountainCarConfig { return MountainCarConfig{MaxSteps: 200} }

// Validate implements configs.Validator.
func (c MountainCarConfig) Validate() error {
	var p configs.Problems
	p.NonNegative("max_steps", c.MaxSteps)
	p.InRange("goal_velocity", c.GoalVelocity, 0, hillSpeed)
	return p.Err()
}

// The valley, which both mountain cars share, and the car with discrete actions.
const (
	hillLeft    = -1.2
	hillRight   = 0.6
	hillSpeed   = 0.07
	hillGravity = 0.0025
	// The start is uniform between these.
	hillStartLow  = -0.6
	hillStartHigh = -0.4

	carForce = 0.001
	carGoal  = 0.5
)

// hillBox is the observation of both mountain cars: position and velocity.
func hillBox() envs.Box {
	return envs.Box{Of: tensor.Float32, Dims: []int{2}, Low: []float64{hillLeft, -hillSpeed}, High: []float64{hillRight, hillSpeed}}
}

// checkHill checks position and velocity.
func checkHill(s [2]float64) error {
	if !(s[0] >= float64(float32(hillLeft)) && s[0] <= hillRight && math.Abs(s[1]) <= hillSpeed) {
		return fmt.Errorf("position %g and velocity %g, expected %g to %g and at most %g in magnitude", s[0], s[1], hillLeft, hillRight, hillSpeed)
	}
	return nil
}

// mountainCar has position and velocity.
type mountainCar struct {
	s    [2]float64
	goal float64
}

// NewMountainCar returns MountainCar. An observation is position and velocity; every step earns −1.
func NewMountainCar(c MountainCarConfig) (*Env, error) {
	if err := valid("mountaincar", c); err != nil {
		return nil, err
	}
	return newEnv(&mountainCar{goal: c.GoalVelocity}, envs.Spec{Name: "mountaincar", Action: envs.Discrete{N: 3}, Reward: envs.Range{Low: -1, High: -1}}, hillBox(), c.MaxSteps), nil
}

func (s *mountainCar) reset(r *rng.Stream) {
	s.s = [2]float64{uniform(r, hillStartLow, hillStartHigh), 0}
}

func (s *mountainCar) step(action *tensor.Tensor, _ *rng.Stream) (float64, bool) {
	x, v := s.s[0], s.s[1]
	v += float64(action.Int64s()[0]-1)*carForce + math.Cos(3*x)*-hillGravity
	v = min(max(v, -hillSpeed), hillSpeed)
	x = min(max(x+v, hillLeft), hillRight)
	// The wall on the left stops the car.
	if x == hillLeft && v < 0 {
		v = 0
	}
	s.s = [2]float64{x, v}
	return -1, x >= carGoal && v >= s.goal
}

func (s *mountainCar) observe(ts *envs.TimeStep) {
	o := ts.Obs[0].Float32s()
	o[0], o[1] = float32(s.s[0]), float32(s.s[1])
}

func (s *mountainCar) state() []float64 { return s.s[:] }
func (s *mountainCar) check() error     { return checkHill(s.s) }
