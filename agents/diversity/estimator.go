package diversity

import (
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Estimator learns to tell skills from features, and pays for those that can be told. A nil one
// does nothing.
type Estimator struct {
	c       Config
	bound   float64
	params  *models.Params
	grads   *models.Segment
	program *program.Program
	adam    optim.Optimizer
	groups  []optim.Group
	// bonus and hit are the program's outputs.
	bonus, hit []float32
	state      state
}

var _ checkpoint.Stater = (*Estimator)(nil)

// state is what an Estimator carries beside parameters and moments.
type state struct {
	// Square is the running mean of the bonus's square.
	Square float64 `json:"square"`
	// Sums are over the updates since Measure.
	Sums sums `json:"sums"`
}

type sums struct {
	Updates  int     `json:"updates"`
	MI       float64 `json:"mi"`
	Paid     float64 `json:"paid"`
	Accuracy float64 `json:"accuracy"`
	Beta     float64 `json:"beta"`
	Scale    float64 `json:"scale"`
}

const (
	// forget is how much of the running square each update replaces.
	forget = 0.01
	// least is the smallest scale as a part of the bound.
	least = 0.1
	// slack is how far rounding may take an estimate above its bound.
	slack = 1e-3
)

// New returns an estimator over the transitions of b, whose tensors its program reads in place; it
// gives b those that it lacks. An error names the key that does not fit, and what there is instead.
func New(c Config, s *agents.Setup, b *replay.Batch) (_ *Estimator, err error) {
	fields, action, skill, err := c.features(&s.Spec)
	if err != nil {
		return nil, fmt.Errorf("agent.diversity.%w", err)
	}
	e := &Estimator{c: c}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("diversity: %w", err), e.Close())
		}
	}()
	batch := len(b.Reward)
	g := layer.New("diversity", s.Key.Split("diversity"), layer.Options{})
	e.bound = e.c.draw(g, batch, fields, action, skill)
	net, values, err := g.Network(models.Options{})
	if err != nil {
		return nil, err
	}
	if e.params, err = models.NewParams(net, nil); err != nil {
		return nil, err
	}
	if err := e.params.Load(values); err != nil {
		return nil, err
	}
	seg := e.params.Segment(models.Trainable)
	if e.grads, err = seg.Like(); err != nil {
		return nil, err
	}
	inputs := map[string]*tensor.Tensor{}
	place := func(name string, at **tensor.Tensor) func() {
		if *at != nil {
			inputs[name] = *at
		}
		return func() { *at = e.program.Input(name) }
	}
	after := []func(){place(wrap.SkillField, &b.Obs[s.Spec.Observation.Index(wrap.SkillField)])}
	for _, f := range fields {
		after = append(after, place(nextPrefix+f.Name, &b.NextObs[s.Spec.Observation.Index(f.Name)]))
	}
	if action != nil {
		after = append(after, place(actionInput, &b.Action))
	}
	e.program, err = program.New(net, e.params, program.Config{
		Engine: s.Engine, Batch: batch, BatchSymbol: layer.Batch, Inputs: inputs, Gradients: []*models.Segment{e.grads},
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: lossOutput}}}},
	})
	if err != nil {
		return nil, err
	}
	for _, f := range after {
		f()
	}
	e.bonus, e.hit = e.program.Output(bonusOutput).Float32s(), e.program.Output(hitOutput).Float32s()
	var list []optim.Param
	for i, spec := range seg.Specs() {
		at, n := seg.Range(i)
		list = append(list, optim.Param{Name: spec.Name, Offset: at, Len: n})
	}
	o := optim.Config{Kind: "adam", LR: c.LearningRate}
	if e.groups, err = optim.Groups(o, seg.Floats(), e.grads.Floats(), list); err != nil {
		return nil, err
	}
	e.adam, err = optim.New(o)
	e.state.Square = e.bound * e.bound
	return e, err
}

// features finds skill and features, or says which key does not fit.
func (c *Config) features(spec *envs.Spec) (fields []envs.Field, action, skill envs.Space, err error) {
	i := spec.Observation.Index(wrap.SkillField)
	if i < 0 {
		return nil, nil, nil, fmt.Errorf("kind: %s tells skills apart, and the observations of %s have none; give them one by wrappers.skill", c.Kind, spec.Name)
	}
	skill = spec.Observation[i].Space
	if box, ok := skill.(envs.Box); !ok || len(box.Dims) != 1 || box.Of != tensor.Float32 {
		return nil, nil, nil, fmt.Errorf("kind: the %s of %s is %v, expected a vector of float32", wrap.SkillField, spec.Name, skill)
	}
	var known []string
	for _, f := range spec.Observation {
		if f.Window == nil && len(f.Space.Shape()) < 2 && f.Name != wrap.SkillField {
			known = append(known, f.Name)
		}
	}
	seen := map[string]bool{}
	for k, name := range c.Features {
		i := spec.Observation.Index(name)
		switch {
		case seen[name]:
			return nil, nil, nil, fmt.Errorf("features[%d]: %q is given twice", k, name)
		case name == ActionFeature && i < 0:
			action = spec.Action
		case i < 0:
			return nil, nil, nil, fmt.Errorf("features[%d]: %q is no field of the observation of %s; expected %s or one of %q", k, name, spec.Name, ActionFeature, known)
		case name == wrap.SkillField:
			return nil, nil, nil, fmt.Errorf("features[%d]: %q is what is to be told", k, name)
		case spec.Observation[i].Window != nil || len(spec.Observation[i].Space.Shape()) > 1:
			return nil, nil, nil, fmt.Errorf("features[%d]: %q %v of %s is a window: prices and the calendar would give skills away without any behaviour; expected %s or one of %q", k, name, spec.Observation[i].Space.Shape(), spec.Name, ActionFeature, known)
		default:
			fields = append(fields, spec.Observation[i])
		}
		seen[name] = true
	}
	return fields, action, skill, nil
}

// Pay adds the bonus of the batch's transitions to rewards [batch], and takes a step of learning.
// The schedule is at envSteps of a run of total env steps, 0 where that is not known. An estimate
// that is no number or above its bound is an error.
func (e *Estimator) Pay(rewards []float32, envSteps, total int64) error {
	if e == nil {
		return nil
	}
	if err := e.program.Run(); err != nil {
		return fmt.Errorf("diversity: %w", err)
	}
	n, mean, square, hit := float64(len(e.bonus)), 0.0, 0.0, 0.0
	for i, x := range e.bonus {
		x := float64(x)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("diversity: the estimate of transition %d is %g; lower diversity.learning_rate", i, x)
		}
		if x > e.bound+slack {
			return fmt.Errorf("diversity: the estimate of transition %d is %g, above its bound of %g: its %s is not one-hot, or no direction", i, x, e.bound, wrap.SkillField)
		}
		mean, square, hit = mean+x/n, square+float64(x*x)/n, hit+float64(e.hit[i])/n
	}
	s := &e.state
	s.Square += forget * (square - s.Square)
	beta, scale := e.c.BetaSchedule.Of(e.c.Beta, envSteps, total), 1.0
	if e.c.Normalize {
		scale = max(math.Sqrt(s.Square), least*e.bound)
	}
	weight := float32(beta / scale)
	for i, x := range e.bonus {
		rewards[i] += float32(weight * x)
	}
	if err := e.adam.Step(e.groups); err != nil {
		return fmt.Errorf("diversity: %w", err)
	}
	a := &s.Sums
	a.Updates++
	a.MI, a.Paid, a.Accuracy, a.Beta, a.Scale = a.MI+mean, a.Paid+mean*beta/scale, a.Accuracy+hit, a.Beta+beta, a.Scale+scale
	return nil
}

// Measure writes the metrics of the updates since it was last called.
func (e *Estimator) Measure(m agents.Metrics) {
	if e == nil || e.state.Sums.Updates == 0 {
		return
	}
	a := e.state.Sums
	k := float64(a.Updates)
	m["diversity/mi"], m["diversity/bonus"], m["diversity/bound"], m["diversity/accuracy"] = a.MI/k, a.Paid/k, e.bound, a.Accuracy/k
	m["diversity/beta"], m["diversity/scale"] = a.Beta/k, a.Scale/k
	e.state.Sums = sums{}
}

// Edit takes other values of the keys of [Editable].
func (e *Estimator) Edit(c *Config) {
	if e == nil {
		return
	}
	e.c = *c
	optim.SetLR(e.groups, c.LearningRate)
}

// SaveState implements checkpoint.Stater.
func (e *Estimator) SaveState(w *checkpoint.Writer) error {
	if e == nil {
		return nil
	}
	w.PutJSON("state", e.state)
	network.SaveParams(w.Scope("params"), e.params)
	network.SaveOptimizer(w.Scope("optim"), e.adam)
	return nil
}

// LoadState implements checkpoint.Stater.
func (e *Estimator) LoadState(r *checkpoint.Reader) error {
	if e == nil {
		return nil
	}
	var s state
	if err := r.JSON("state", &s); err != nil {
		return err
	}
	if err := network.LoadParams(r.Scope("params"), e.params); err != nil {
		return err
	}
	if err := network.LoadOptimizer(r.Scope("optim"), e.adam); err != nil {
		return err
	}
	e.state = s
	return nil
}

// Close frees what the estimator holds, not the batch.
func (e *Estimator) Close() error {
	if e == nil {
		return nil
	}
	var errs []error
	if e.program != nil {
		errs = append(errs, e.program.Close())
	}
	if e.grads != nil {
		errs = append(errs, e.grads.Close())
	}
	if e.params != nil {
		errs = append(errs, e.params.Close())
	}
	e.program, e.grads, e.params = nil, nil, nil
	return errors.Join(errs...)
}
