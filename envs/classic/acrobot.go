package classic

import (
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// AcrobotConfig describes Acrobot-v1: two links hang from a joint, and a torque of −1 (0), 0 (1) or
// 1 (2) between them swings the tip up.
type AcrobotConfig struct {
	// MaxSteps is the time limit, 0 for none.
	MaxSteps int `yaml:"max_steps"`
}

// AcrobotDefaults returns Acrobot-v1.
func AcrobotDefaults() AcrobotConfig { return AcrobotConfig{MaxSteps: 500} }

// Validate implements configs.Validator.
func (c AcrobotConfig) Validate() error {
	var p configs.Problems
	p.NonNegative("max_steps", c.MaxSteps)
	return p.Err()
}

// The constants of Acrobot. Links have mass, length and moment of inertia 1.
const (
	acrobotInterval = 0.2
	acrobotGravity  = 9.8
	acrobotCentre   = 0.5 // where a link's centre of mass lies
	acrobotSpeed1   = 4 * math.Pi
	acrobotSpeed2   = 9 * math.Pi
)

// acrobot has the angles of the first link from hanging down and of the second link from the first
// one, and their velocities.
type acrobot struct{ s [4]float64 }

// NewAcrobot returns Acrobot. An observation is cos and sin of the first angle, those of the
// second, and both velocities; every step earns −1 but the last one, which earns 0.
func NewAcrobot(c AcrobotConfig) (*Env, error) {
	if err := valid("acrobot", c); err != nil {
		return nil, err
	}
	spec := envs.Spec{Name: "acrobot", Action: envs.Discrete{N: 3}, Reward: envs.Range{Low: -1, High: 0}}
	return newEnv(&acrobot{}, spec, symmetric(1, 1, 1, 1, acrobotSpeed1, acrobotSpeed2), c.MaxSteps), nil
}

func (s *acrobot) reset(r *rng.Stream) {
	for i := range s.s {
		s.s[i] = float64(float32(uniform(r, -0.1, 0.1)))
	}
}

func (s *acrobot) step(action *tensor.Tensor, _ *rng.Stream) (float64, bool) {
	torque := float64(action.Int64s()[0] - 1)
	// Runge-Kutta of fourth order over one interval.
	k1 := acrobotSlope(s.s, torque)
	k2 := acrobotSlope(along(s.s, acrobotInterval/2, k1), torque)
	k3 := acrobotSlope(along(s.s, acrobotInterval/2, k2), torque)
	k4 := acrobotSlope(along(s.s, acrobotInterval, k3), torque)
	next := s.s
	for i := range next {
		next[i] += acrobotInterval / 6 * (k1[i] + 2*k2[i] + 2*k3[i] + k4[i])
	}
	next[0], next[1] = wrapAngle(next[0]), wrapAngle(next[1])
	next[2] = min(max(next[2], -acrobotSpeed1), acrobotSpeed1)
	next[3] = min(max(next[3], -acrobotSpeed2), acrobotSpeed2)
	s.s = next
	if acrobotDone(next) {
		return 0, true
	}
	return -1, false
}

// acrobotDone reports whether the tip is above the line, one link's length over the joint.
func acrobotDone(s [4]float64) bool { return -math.Cos(s[0])-math.Cos(s[1]+s[0]) > 1 }

// along returns s + dt·k.
func along(s [4]float64, dt float64, k [4]float64) [4]float64 {
	for i := range s {
		s[i] += dt * k[i]
	}
	return s
}

// acrobotSlope is the derivative of the state, by the equations of Sutton and Barto's book with
// masses, lengths and moments of 1.
func acrobotSlope(s [4]float64, torque float64) [4]float64 {
	const c = acrobotCentre
	sin2, cos2 := math.Sincos(s[1])
	d1 := c*c + (1 + c*c + 2*c*cos2) + 2
	d2 := (c*c + c*cos2) + 1
	phi2 := c * acrobotGravity * math.Cos(s[0]+s[1]-math.Pi/2)
	phi1 := -c*(s[3]*s[3])*sin2 - 2*c*s[3]*s[2]*sin2 + (c+1)*acrobotGravity*math.Cos(s[0]-math.Pi/2) + phi2
	second := (torque + d2/d1*phi1 - c*(s[2]*s[2])*sin2 - phi2) / (c*c + 1 - d2*d2/d1)
	first := -(d2*second + phi1) / d1
	return [4]float64{s[2], s[3], first, second}
}

// wrapAngle adds or subtracts revolutions until the angle lies in [−π, π].
func wrapAngle(a float64) float64 {
	for a > math.Pi {
		a -= 2 * math.Pi
	}
	for a < -math.Pi {
		a += 2 * math.Pi
	}
	return a
}

func (s *acrobot) observe(ts *envs.TimeStep) {
	o := ts.Obs[0].Float32s()
	sin1, cos1 := math.Sincos(s.s[0])
	sin2, cos2 := math.Sincos(s.s[1])
	o[0], o[1], o[2], o[3], o[4], o[5] = float32(cos1), float32(sin1), float32(cos2), float32(sin2), float32(s.s[2]), float32(s.s[3])
}

func (s *acrobot) state() []float64 { return s.s[:] }

func (s *acrobot) check() error {
	return within(s.s[:], []float64{math.Pi, math.Pi, acrobotSpeed1, acrobotSpeed2})
}
