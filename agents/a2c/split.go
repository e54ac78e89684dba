package a2c

import (
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// runFLOPs is the forward arithmetic that one core is given at a time while learning. More, and
// what the gradient needs again has left the cache: windows of TimeCNN cost 3.5 ms of one core's
// time each in runs of 1 to 4, and 5 ms in runs of 48. A variable so that tests can split small
// work.
var runFLOPs = 6e8

// arithmetic is the forward arithmetic of a network on a batch.
func arithmetic(n *models.Network, batch int) float64 {
	return program.FLOPs(n.Model, map[string]int{layer.Batch: batch})
}

// runs returns into how many runs, of how many units each, work on so many units is cut; unit is
// the arithmetic of one.
func runs(units, shards int, unit float64) (n, size int) {
	n = min(max(1, int(math.Ceil(float64(units)*unit/(float64(shards)*runFLOPs)))), units)
	size = (units + n - 1) / n
	return (units + size - 1) / size, size
}

// minibatches runs a learning program over all samples, a part at a time, and adds up the
// gradients. That is exact: the loss is a sum over samples.
type minibatches struct {
	prog    *program.Program
	n, size int
	// in and out are the rows of all samples, by name; those of the program itself when there is
	// one run.
	in, out map[string]*tensor.Tensor
	// fill and drain pair the rows of all samples with the program's, in the order of names.
	fill, drain [][2]*tensor.Tensor
	// grads is nil for a program that only runs forward.
	grads *models.Segment
	// masks are the program's, filled before each of its runs.
	masks *onpolicy.Masks
}

// newMinibatches compiles a network for a number of samples. results are the names of the outputs
// that are wanted. loss, unless nil, is differentiated into the learner's gradients.
func (l *learner) newMinibatches(net *models.Network, samples int, loss *autodiff.Objective, results []string) (*minibatches, error) {
	s := &l.Setup
	parts := s.Split(program.SplitFLOPs).Shards(net, layer.Batch, samples, 3)
	m := &minibatches{in: map[string]*tensor.Tensor{}, out: map[string]*tensor.Tensor{}}
	m.n, m.size = runs(samples, parts, arithmetic(net, samples)/float64(samples))
	if m.n > 1 {
		// Only the last run is filled up.
		m.size = (m.size + parts - 1) / parts * parts
	}
	c := program.Config{Engine: s.Engine, Batch: m.size, BatchSymbol: layer.Batch, Shards: parts, Weights: []string{policyWeight, valueWeight, entropyWeight}}
	if loss != nil {
		m.grads, c.Objectives = l.Grads, []autodiff.Objective{*loss}
		if m.n == 1 {
			c.Gradients = []*models.Segment{m.grads}
		}
	}
	var err error
	if m.prog, err = program.New(net, l.Params, c); err != nil {
		return nil, err
	}
	l.Programs = append(l.Programs, m.prog)
	whole := func(t *tensor.Tensor) *tensor.Tensor {
		if m.n == 1 {
			return t
		}
		shape := slices.Clone(t.Shape())
		shape[0] *= m.n
		return tensor.New(t.DType(), shape...)
	}
	m.masks = l.NewMasks(m.prog, m.size)
	for _, name := range m.prog.Inputs() {
		if slices.ContainsFunc(l.g.Masks, func(x models.DropoutMask) bool { return x.Input == name }) {
			continue
		}
		t := m.prog.Input(name)
		m.in[name] = whole(t)
		m.fill = append(m.fill, [2]*tensor.Tensor{m.in[name], t})
		if t.DType() == tensor.Bool {
			// Rows that fill up the last run have every action, and weights of 0.
			for i := range m.in[name].Bools() {
				m.in[name].Bools()[i] = true
			}
		}
	}
	for _, name := range results {
		t := m.prog.Output(name)
		m.out[name] = whole(t)
		m.drain = append(m.drain, [2]*tensor.Tensor{m.out[name], t})
	}
	return m, nil
}

// copyFrom copies the rows of the samples of every input from those of another program.
func (m *minibatches) copyFrom(o *minibatches, samples int) {
	for name, t := range m.in {
		n := samples * (len(t.Bytes()) / t.Shape()[0])
		copy(t.Bytes()[:n], o.in[name].Bytes())
	}
}

// run computes results and gradients of all samples of a rollout. between is called before each of the parts;
// its error ends the run.
func (m *minibatches) run(rollout *onpolicy.Rollout, between func(done, of int) error) error {
	if m.n == 1 {
		if err := between(0, 1); err != nil {
			return err
		}
		m.masks.FillRollout(rollout, 0)
		return m.prog.Run()
	}
	for k := range m.n {
		if err := between(k, m.n); err != nil {
			return err
		}
		for _, p := range m.fill {
			b := p[1].Bytes()
			copy(b, p[0].Bytes()[k*len(b):])
		}
		m.masks.FillRollout(rollout, k*m.size)
		if err := m.prog.Run(); err != nil {
			return err
		}
		for _, p := range m.drain {
			b := p[1].Bytes()
			copy(p[0].Bytes()[k*len(b):], b)
		}
		if m.grads == nil {
			continue
		}
		src := m.prog.Gradients(0).Floats()
		if k == 0 {
			copy(m.grads.Floats(), src)
		} else {
			program.Add(m.grads.Floats(), src)
		}
	}
	return nil
}
