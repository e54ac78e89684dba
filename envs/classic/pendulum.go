package classic

import (
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// PendulumConfig describes Pendulum-v1: a pendulum is swung up and held upright by a torque that is
// too weak to lift it at once.
type PendulumConfig struct {
	// MaxSteps is the time limit, 0 for none.
	MaxSteps int `yaml:"max_steps"`
	// Gravity is g, in m/s².
	Gravity float64 `yaml:"gravity"`
}

// PendulumDefaults returns Pendulum-v1.
func PendulumDefaults() PendulumConfig { return PendulumConfig{MaxSteps: 200, Gravity: 10} }

// Validate implements configs.Validator.
func (c PendulumConfig) Validate() error {
	var p configs.Problems
	p.NonNegative("max_steps", c.MaxSteps)
	p.NonNegative("gravity", c.Gravity)
	return p.Err()
}

// The constants of Pendulum. Its mass and its length are 1.
const (
	pendulumSpeed    = 8.0
	pendulumTorque   = 2.0
	pendulumInterval = 0.05
)

// pendulum has the angle from the upright position, which counts revolutions, and the angular
// velocity.
type pendulum struct {
	s       [2]float64
	gravity float64
}

// NewPendulum returns Pendulum. An observation is cos and sin of the angle and the angular
// velocity; the reward is −(θ² + 0.1·θ̇² + 0.001·u²) of the state before the step, θ in [−π, π).
func NewPendulum(c PendulumConfig) (*Env, error) {
	if err := valid("pendulum", c); err != nil {
		return nil, err
	}
	worst := math.Pi*math.Pi + 0.1*pendulumSpeed*pendulumSpeed + 0.001*pendulumTorque*pendulumTorque
	// A little room for the float32 that torques are computed in.
	reward := envs.Range{Low: -worst - 1e-6, High: 0}
	return newEnv(&pendulum{gravity: c.Gravity}, envs.Spec{Name: "pendulum", Action: envs.NewBox(-pendulumTorque, pendulumTorque, 1), Reward: reward}, symmetric(1, 1, pendulumSpeed), c.MaxSteps), nil
}

func (s *pendulum) reset(r *rng.Stream) {
	s.s = [2]float64{uniform(r, -math.Pi, math.Pi), uniform(r, -1, 1)}
}

func (s *pendulum) step(action *tensor.Tensor, _ *rng.Stream) (float64, bool) {
	angle, spin := s.s[0], s.s[1]
	u := action.Float32s()[0]
	turned := angle + math.Pi
	turned -= 2*math.Pi*math.Floor(turned/(2*math.Pi)) + math.Pi
	cost := turned*turned + 0.1*(spin*spin) + float64(0.001*(u*u))
	spin += (3*s.gravity/2*math.Sin(angle) + float64(3*u)) * pendulumInterval
	spin = min(max(spin, -pendulumSpeed), pendulumSpeed)
	// Semi-implicit Euler: the angle moves by the new velocity.
	s.s = [2]float64{angle + spin*pendulumInterval, spin}
	return -cost, false
}

func (s *pendulum) observe(ts *envs.TimeStep) {
	o := ts.Obs[0].Float32s()
	sin, cos := math.Sincos(s.s[0])
	o[0], o[1], o[2] = float32(cos), float32(sin), float32(s.s[1])
}

func (s *pendulum) state() []float64 { return s.s[:] }

func (s *pendulum) check() error {
	return within(s.s[:], []float64{math.MaxFloat32, pendulumSpeed})
}
