package offpolicy

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Noise is that of exploration.
type Noise struct {
	// Kind is none, normal, or ou, which is Ornstein-Uhlenbeck's: noise that pulls back to 0 and
	// depends on the noise before.
	Kind string `yaml:"kind"`
	// Sigma is the standard deviation, of ou for each √dt.
	Sigma float64 `yaml:"sigma"`
	// Theta and Dt are ou's: how strongly it pulls back, and the length of a round.
	Theta float64 `yaml:"theta"`
	Dt    float64 `yaml:"dt"`
}

// The kinds of noise.
const (
	None   = "none"
	Normal = "normal"
	OU     = "ou"
)

// DefaultNoise adds none, with what holds as soon as a kind is named.
func DefaultNoise() Noise { return Noise{Kind: None, Sigma: 0.1, Theta: 0.15, Dt: 0.01} }

// On reports whether there is any: none is off, and so is a deviation of 0.
func (c Noise) On() bool { return c.Kind != None && c.Sigma > 0 }

// SetDefaults implements configs.Defaulter: a section that is given asks for noise.
func (c *Noise) SetDefaults() {
	*c = DefaultNoise()
	c.Kind = Normal
}

// Validate implements configs.Validator.
func (c Noise) Validate() error {
	var p configs.Problems
	p.OneOf("kind", c.Kind, None, Normal, OU)
	p.NonNegative("sigma", c.Sigma)
	p.NonNegative("theta", c.Theta)
	p.Positive("dt", c.Dt)
	return p.Err()
}

// noise is added to the actions of n environments for exploration.
type noise struct {
	c       Noise
	n, dims int
	// x is the state of ou, [n, A]; the others have none.
	x []float32
}

func newNoise(c Noise, n, dims int) *noise {
	z := &noise{n: n, dims: dims}
	z.edit(c)
	return z
}

// edit takes other values. Noise that becomes ou begins at 0.
func (z *noise) edit(c Noise) {
	if z.c = c; c.Kind != OU || !c.On() {
		z.x = nil
	} else if z.x == nil {
		z.x = make([]float32, z.n*z.dims)
	}
}

// add adds noise to actions [n, A] in [−1, 1], and clips them. Every element takes one draw.
func (z *noise) add(actions []float32, s *rng.Stream) {
	if !z.c.On() {
		return
	}
	pull, push := z.c.Theta*z.c.Dt, z.c.Sigma*math.Sqrt(z.c.Dt)
	for i, a := range actions {
		var e float32
		if z.c.Kind == OU {
			z.x[i] += float32(push*s.Normal() - pull*float64(z.x[i]))
			e = z.x[i]
		} else {
			e = float32(z.c.Sigma * s.Normal())
		}
		actions[i] = min(max(a+e, -1), 1)
	}
}

// restart forgets the state of an environment.
func (z *noise) restart(env int) {
	if z.x != nil {
		clear(z.x[env*z.dims:][:z.dims])
	}
}

// Exploration is how exploring actors draw.
type Exploration struct {
	// UseSDE draws by gSDE from squashed Gaussians. Its matrices are drawn again after SDESampleFreq
	// rounds since a learner step, unless that is below 1.
	network.Exploration
	// AtWarmup draws from the policy, too, while the replay waits for its first transitions.
	AtWarmup bool
	// Noise is added to actions in [−1, 1], or with BeforeSquashing, where densities are compared, to
	// what is squashed to them.
	Noise           Noise
	BeforeSquashing bool
}

// Explore lets exploring actors draw as e says, or edits what they have; the caller replaces actors
// that were made before.
func (l *Learner) Explore(e Exploration) {
	if l.noise == nil {
		l.noise = newNoise(e.Noise, l.Setup.Envs, l.Networks.Frame.Dims)
	}
	l.exploration = e
	l.noise.edit(e.Noise)
}

// NoiseState is what noise of the kind ou has come to, [environments, A]; nil for the others.
func (l *Learner) NoiseState() []float32 { return l.noise.x }

// noiseEntry is the state of the exploration's noise; empty unless it is ou.
const noiseEntry = "action_noise"

// SaveNoise saves the noise, which LoadNoise takes back.
func (l *Learner) SaveNoise(w *checkpoint.Writer) { w.PutFloat32s(noiseEntry, l.noise.x) }

// LoadNoise restores the noise. Where its kind was edited, that of ou begins at 0.
func (l *Learner) LoadNoise(r *checkpoint.Reader) error {
	clear(l.noise.x)
	if !r.Has(noiseEntry) {
		return nil
	}
	x, _, err := r.Float32s(noiseEntry)
	if err != nil {
		return err
	}
	if own := l.noise.x; len(x) != len(own) && min(len(x), len(own)) > 0 {
		return fmt.Errorf("%s: %d numbers in the checkpoint, expected %d", noiseEntry, len(x), len(own))
	}
	copy(l.noise.x, x)
	return nil
}

// Recorder returns a recorder of r that restarts the noise of environments whose episodes end,
// and tells the clock.
func (l *Learner) Recorder(r agents.Recorder) agents.Recorder {
	return &recorder{l.Clock.Recorder(r), l.noise}
}

type recorder struct {
	agents.Recorder
	noise *noise
}

// End implements agents.Recorder.
func (r *recorder) End(b *vector.Batch) error {
	for _, e := range b.Ended {
		r.noise.restart(e.Env)
	}
	return r.Recorder.End(b)
}
