package fullbatch

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// maxCMAESDim bounds the matrix of CMA-ES to half a gigabyte.
const maxCMAESDim = 8192

// Methods are the values of Config.Method.
var Methods = []string{"lbfgs", "cg", "cmaes"}

// Config chooses a method and when it stops. The zero value of each field but
// Method is usable.
type Config struct {
	Method string `yaml:"method"` // lbfgs, cg or cmaes

	// MaxIterations limits the major iterations; 0 means 1000.
	MaxIterations int `yaml:"max_iterations,omitempty"`
	// MaxEvaluations limits the points asked for; 0 is no limit.
	MaxEvaluations int `yaml:"max_evaluations,omitempty"`
	// GradTol stops lbfgs and cg when every component of the gradient is
	// smaller; 0 means 1e-5.
	GradTol float64 `yaml:"grad_tol,omitempty"`
	// FuncIterations stops after so many major iterations in a row without an
	// improvement by more than FuncTol; 0 never does.
	FuncIterations int     `yaml:"func_iterations,omitempty"`
	FuncTol        float64 `yaml:"func_tol,omitempty"`

	Memory int `yaml:"memory,omitempty"` // lbfgs: stored updates; 0 means 15
	// Restart is the number of major iterations after which lbfgs and cg restart from the best
	// point, whether a run was stopped or not; it bounds the journal of cg. 0 means 100 with cg,
	// and never with lbfgs.
	Restart int `yaml:"restart,omitempty"`

	Sigma      float64 `yaml:"sigma,omitempty"`      // cmaes: initial standard deviation; 0 means 0.5
	Population int     `yaml:"population,omitempty"` // cmaes: 0 means 4 + floor(3 ln n)
	Seed       uint64  `yaml:"seed,omitempty"`       // cmaes
}

// restart returns the length of a stretch of lbfgs and cg in major iterations.
func (c Config) restart() int {
	switch {
	case c.Restart == 0 && c.Method == "lbfgs":
		return math.MaxInt
	case c.Restart == 0:
		return 100
	}
	return c.Restart
}

// Iterations returns the limit of the major iterations.
func (c Config) Iterations() int {
	if c.MaxIterations == 0 {
		return 1000
	}
	return c.MaxIterations
}

// Validate reports every problem of c, joined, each beginning with its field.
func (c Config) Validate() error {
	var errs []error
	if !slices.Contains(Methods, c.Method) {
		errs = append(errs, fmt.Errorf("method: unknown %q, want one of %s", c.Method, strings.Join(Methods, ", ")))
	}
	for _, f := range []struct {
		name  string
		value int
		only  string
	}{
		{"max_iterations", c.MaxIterations, ""}, {"max_evaluations", c.MaxEvaluations, ""}, {"restart", c.Restart, ""},
		{"func_iterations", c.FuncIterations, ""}, {"memory", c.Memory, "lbfgs"}, {"population", c.Population, "cmaes"},
	} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("%s: %d is negative", f.name, f.value))
		}
		if f.value != 0 && f.only != "" && f.only != c.Method {
			errs = append(errs, fmt.Errorf("%s: not used by %s", f.name, c.Method))
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"grad_tol", c.GradTol}, {"func_tol", c.FuncTol}, {"sigma", c.Sigma}} {
		if !(f.value >= 0 && f.value <= math.MaxFloat64) {
			errs = append(errs, fmt.Errorf("%s: %g, want a finite number >= 0", f.name, f.value))
		}
	}
	if c.Sigma != 0 && c.Method != "cmaes" {
		errs = append(errs, fmt.Errorf("sigma: not used by %s", c.Method))
	}
	if c.GradTol != 0 && c.Method == "cmaes" {
		errs = append(errs, errors.New("grad_tol: not used by cmaes"))
	}
	if c.Restart != 0 && c.Method == "cmaes" {
		errs = append(errs, errors.New("restart: not used by cmaes"))
	}
	if c.Method != "cmaes" && c.Restart >= 0 && c.FuncIterations >= c.restart() {
		errs = append(errs, fmt.Errorf("func_iterations: %d, want less than restart, which is %d and counts from 0 again", c.FuncIterations, c.restart()))
	}
	if c.FuncTol != 0 && c.FuncIterations == 0 {
		errs = append(errs, errors.New("func_tol: needs func_iterations"))
	}
	return errors.Join(errs...)
}
