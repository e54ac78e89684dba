package optim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Zero, in a field of Config whose zero value means the default, means 0.
const Zero = -1

// Config describes an optimiser. A field that the kind does not use must be
// left out.
type Config struct {
	// Kind is sgd, rmsprop, adam, adamw, lamb or lion.
	Kind string `yaml:"kind"`

	// LR is the learning rate; Groups copies it into the groups.
	LR float64 `yaml:"lr"`

	// Decay is the weight decay of every group whose parameters match no
	// pattern of NoDecay. It is added to the gradient by sgd, rmsprop and adam,
	// and decoupled from it (scaled by the learning rate) in adamw, lamb and lion.
	Decay   float64  `yaml:"decay,omitempty"`
	NoDecay []string `yaml:"no_decay,omitempty"` // see glob.Match; e.g. "*.bias"

	// Overrides change parameters that match; the first match counts.
	Overrides []Override `yaml:"overrides,omitempty"`

	Momentum  float64 `yaml:"momentum,omitempty"`  // sgd, rmsprop; 0 is none
	Dampening float64 `yaml:"dampening,omitempty"` // sgd
	Nesterov  bool    `yaml:"nesterov,omitempty"`  // sgd

	Beta1 float64 `yaml:"beta1,omitempty"` // adam, adamw, lamb, lion; default 0.9; Zero is 0
	Beta2 float64 `yaml:"beta2,omitempty"` // default 0.999; lion 0.99; Zero is 0
	Eps   float64 `yaml:"eps,omitempty"`   // default 1e-8; lamb 1e-6; Zero is 0
	// AMSGrad takes the largest second moment so far; adam, adamw.
	AMSGrad bool `yaml:"amsgrad,omitempty"`

	Alpha     float64 `yaml:"alpha,omitempty"`      // rmsprop; default 0.99; Zero is 0
	EpsInside bool    `yaml:"eps_inside,omitempty"` // rmsprop: eps under the root, as TensorFlow
	Centred   bool    `yaml:"centred,omitempty"`    // rmsprop: divide by the variance
	Ones      bool    `yaml:"ones,omitempty"`       // rmsprop: the mean square begins at 1, as TensorFlow

	// Workers limits the processors of one step; 0 is all of them. Only steps over at least a million
	// parameters are split, and the results do not depend on it.
	Workers int `yaml:"workers,omitempty"`
}

// Override gives the parameters that match one of the patterns a learning rate
// or decay of their own.
type Override struct {
	Params  []string `yaml:"params"`             // patterns, see glob.Match
	LRScale float64  `yaml:"lr_scale,omitempty"` // multiplies the learning rate; 0 means 1
	Decay   *float64 `yaml:"decay,omitempty"`    // replaces the decay
}

// kind is one row of the table of optimisers.
type kind struct {
	name     string
	defaults Config
	uses     string // optional fields, by yaml name
	perLayer bool   // groups must be single parameters
	build    func(Config) rule
}

var kinds = []kind{
	{name: "sgd", uses: "momentum dampening nesterov", build: newSGD},
	{name: "rmsprop", uses: "momentum alpha eps eps_inside centred ones",
		defaults: Config{Alpha: 0.99, Eps: 1e-8}, build: newRMSProp},
	{name: "adam", uses: "beta1 beta2 eps amsgrad",
		defaults: Config{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, build: func(c Config) rule { return newAdam(c, false) }},
	{name: "adamw", uses: "beta1 beta2 eps amsgrad",
		defaults: Config{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, build: func(c Config) rule { return newAdam(c, true) }},
	{name: "lamb", uses: "beta1 beta2 eps", perLayer: true,
		defaults: Config{Beta1: 0.9, Beta2: 0.999, Eps: 1e-6}, build: newLAMB},
	{name: "lion", uses: "beta1 beta2",
		defaults: Config{Beta1: 0.9, Beta2: 0.99}, build: newLion},
}

// Kinds returns the names of the optimisers.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

func (c Config) lookup() (kind, bool) {
	for _, k := range kinds {
		if k.name == c.Kind {
			return k, true
		}
	}
	return kind{}, false
}

// WithDefaults returns c with the kind's defaults in place of zero values. Zero
// stays, so the result can be written and read again.
func (c Config) WithDefaults() Config {
	k, _ := c.lookup()
	for _, f := range []struct {
		field *float64
		value float64
	}{
		{&c.Beta1, k.defaults.Beta1}, {&c.Beta2, k.defaults.Beta2},
		{&c.Eps, k.defaults.Eps}, {&c.Alpha, k.defaults.Alpha},
	} {
		if *f.field == 0 {
			*f.field = f.value
		}
	}
	return c
}

// effective is WithDefaults with Zero replaced by 0.
func (c Config) effective() Config {
	c = c.WithDefaults()
	for _, f := range []*float64{&c.Beta1, &c.Beta2, &c.Eps, &c.Alpha} {
		if *f == Zero {
			*f = 0
		}
	}
	return c
}

// Validate reports every problem of c, joined, each beginning with its field.
func (c Config) Validate() error {
	var errs []error
	bad := func(field, format string, args ...any) {
		errs = append(errs, fmt.Errorf("%s: %s", field, fmt.Sprintf(format, args...)))
	}
	k, ok := c.lookup()
	if !ok {
		bad("kind", "unknown optimiser %q, want one of %s", c.Kind, strings.Join(Kinds(), ", "))
	}
	e := c.effective()
	number := func(field string, x, lo, hi float64, open bool) {
		if !(x >= lo && x <= hi) || open && x == hi {
			end := "]"
			if open {
				end = ")"
			}
			bad(field, "%g is not in [%g, %g%s", x, lo, hi, end)
		}
	}
	number("lr", e.LR, 0, math.MaxFloat32, false)
	number("decay", e.Decay, 0, math.MaxFloat32, false)
	number("momentum", e.Momentum, 0, 1, true)
	number("dampening", e.Dampening, 0, 1, false)
	number("beta1", e.Beta1, 0, 1, true)
	number("beta2", e.Beta2, 0, 1, true)
	number("alpha", e.Alpha, 0, 1, true)
	number("eps", e.Eps, 0, math.MaxFloat32, false)
	if c.Workers < 0 {
		bad("workers", "%d is negative", c.Workers)
	}
	if c.Nesterov && (c.Momentum == 0 || c.Dampening != 0) {
		bad("nesterov", "needs momentum and no dampening")
	}
	if c.Dampening != 0 && c.Momentum == 0 {
		bad("dampening", "needs momentum")
	}
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"momentum", c.Momentum != 0}, {"dampening", c.Dampening != 0}, {"nesterov", c.Nesterov},
		{"beta1", c.Beta1 != 0}, {"beta2", c.Beta2 != 0}, {"eps", c.Eps != 0}, {"amsgrad", c.AMSGrad},
		{"alpha", c.Alpha != 0}, {"eps_inside", c.EpsInside}, {"centred", c.Centred}, {"ones", c.Ones},
	} {
		if ok && f.set && !slices.Contains(strings.Fields(k.uses), f.name) {
			bad(f.name, "not used by %s", c.Kind)
		}
	}
	patterns := func(field string, list []string) {
		for i, p := range list {
			if p == "" {
				bad(fmt.Sprintf("%s[%d]", field, i), "empty pattern")
			}
		}
	}
	patterns("no_decay", c.NoDecay)
	for i, o := range c.Overrides {
		field := fmt.Sprintf("overrides[%d]", i)
		if len(o.Params) == 0 {
			bad(field+".params", "no pattern")
		}
		patterns(field+".params", o.Params)
		number(field+".lr_scale", o.LRScale, 0, math.MaxFloat32, false)
		if o.Decay != nil {
			number(field+".decay", *o.Decay, 0, math.MaxFloat32, false)
		}
	}
	return errors.Join(errs...)
}

// New builds the optimiser that c describes. The learning rate and decay that a
// step uses are those of its groups.
func New(c Config, opts ...Option) (Optimizer, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("new optimiser: %w", err)
	}
	k, _ := c.lookup()
	opts = append([]Option{WithWorkers(c.Workers)}, opts...)
	return newStepper(k.name, k.build(c.effective()), opts), nil
}
