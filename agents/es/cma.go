package es

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/optim/cmaes"
)

// maxCMA bounds the covariance, a square matrix of float64, to 32 MiB, and a generation of the
// default population to about a second.
const maxCMA = 2048

// cma is CMA-ES over all parameters together.
type cma struct {
	c      CMAConfig
	setup  *agents.Setup
	centre *models.Segment
	steps  *cmaes.Strategy
	// numbers are where the trainable parameters lie in the centre, pairs of the first and one past
	// the last; between them it is padded.
	numbers [][2]int
	losses  []float64
	// points are the members, [members][parameters].
	points [][]float64
}

func newCMA(c CMAConfig, s *agents.Setup, p *models.Params) (*cma, error) {
	x := &cma{c: c, setup: s, centre: p.Segment(models.Trainable)}
	var start []float64
	for i := range x.centre.Specs() {
		off, n := x.centre.Range(i)
		x.numbers = append(x.numbers, [2]int{off, off + n})
		for _, v := range x.centre.Floats()[off : off+n] {
			start = append(start, float64(v))
		}
	}
	if len(start) > maxCMA {
		return x, fmt.Errorf("the policy has %d parameters to perturb, and CMA-ES keeps the covariance of each with each: expected at most %d; openai_es has no limit", len(start), maxCMA)
	}
	x.steps = cmaes.New(start, cmaes.Config{Population: c.Population, Sigma: c.Sigma, Key: s.Key.Split("cmaes")})
	x.losses, x.points = make([]float64, x.members()), make([][]float64, x.members())
	for k := range x.points {
		x.points[k] = make([]float64, len(start))
	}
	x.ask()
	return x, nil
}

func (x *cma) members() int { return x.steps.Members() }

// ask finds the members of the generation.
func (x *cma) ask() {
	for k, p := range x.points {
		x.steps.Member(k, p)
	}
}

func (x *cma) write(member int, dst, _ []float32) { x.round(dst, x.points[member]) }

// round writes a point to parameters in the layout of the centre.
func (x *cma) round(dst []float32, point []float64) {
	for _, r := range x.numbers {
		to := dst[r[0]:r[1]]
		for i := range to {
			to[i] = float32(point[i])
		}
		point = point[len(to):]
	}
}

func (x *cma) step(ctx context.Context, returns []float64, _ int64, m agents.Metrics) error {
	if err := x.setup.Between(ctx, 0, 1); err != nil {
		return err
	}
	watch := x.setup.Profile.Start()
	for k, r := range returns {
		x.losses[k] = -r
	}
	if err := x.steps.Tell(x.losses); err != nil {
		return err
	}
	x.ask()
	x.round(x.centre.Floats(), x.steps.Mean())
	watch.Lap(agents.Optimising)
	m["train/sigma"] = x.steps.Sigma()
	return nil
}

// edit refuses everything: what there is to edit says where the run begins.
func (x *cma) edit(config any, _ int64) error { return agents.Editable(x.c, config) }

func (x *cma) save(w *checkpoint.Writer) error {
	s := x.steps.State()
	w.PutJSON("generation", s.Generation)
	x.arrays(&s).Save(w)
	return nil
}

// arrays are those of a state; sigma is one number.
func (x *cma) arrays(s *cmaes.State) network.Arrays {
	return network.Arrays{"mean": s.Mean, "pc": s.PC, "ps": s.PS, "factor": s.Factor, "sigma": []float64{s.Sigma}}
}

func (x *cma) load(r *checkpoint.Reader) error {
	n := len(x.steps.Mean())
	s := cmaes.State{Mean: make([]float64, n), PC: make([]float64, n), PS: make([]float64, n), Factor: make([]float64, n*(n+1)/2)}
	if err := r.JSON("generation", &s.Generation); err != nil {
		return err
	}
	arrays := x.arrays(&s)
	if err := arrays.Load(r); err != nil {
		return err
	}
	s.Sigma = arrays["sigma"].([]float64)[0]
	if err := x.steps.SetState(s); err != nil {
		return err
	}
	x.ask()
	return nil
}

func (x *cma) close() error { return nil }
