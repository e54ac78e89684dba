package corebench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// workload is a network that is trained on batches of one size towards random targets by the mean
// of squared differences.
type workload struct {
	name  string
	model func() (*onnx.Model, error)
	// batch is the number of rows; 0 for a model whose batch is fixed.
	batch int
	// target bounds the step's time in bare products, where one is stated.
	target *benchmark.Target
	// parallel adds a row for the step split over two cores; speedup bounds it, where a target is
	// stated.
	parallel bool
	speedup  *benchmark.Target
}

// workloads are the networks of the benchmark, at the sizes it states, with the two
// fixtures also at sizes that a market encoder has, and TimesNet with periods that are given, as
// compiled PyTorch needs them, and with those of each row.
var workloads = []workload{
	{name: "critic-2x256-b256", model: mlp("critic", "Relu", 23, 256, 256, 1), batch: 256, target: benchmark.AtMost(1.35), parallel: true, speedup: benchmark.AtLeast(1.7)},
	{name: "critic-2x64-b64", model: mlp("critic", "Relu", 23, 64, 64, 1), batch: 64},
	{name: "timecnn-b64", model: timeCNN, batch: 64, parallel: true},
	{name: "timecnn-fixture", model: fixture("timecnn_glu")},
	{name: "encoder-b32", model: preNormBlock, batch: 32, parallel: true},
	{name: "encoder-fixture", model: fixture("encoder_attention")},
	{name: "timesnet-b32", model: timesNet(encoder.PeriodsFrozen), batch: 32, target: benchmark.AtMost(1.4), parallel: true},
	{name: "timesnet-sample-b32", model: timesNet(encoder.PeriodsSample), batch: 32, target: benchmark.AtMost(1.4)},
}

const (
	learningRate = 1e-4
	maxNorm      = 10
)

// trainer is a bound training step: program, clipping and Adam.
type trainer struct {
	net     *models.Network
	params  *models.Params
	program *program.Program
	groups  []optim.Group
	opt     optim.Optimizer
	// forward is the network without the loss.
	forward *onnx.Model
}

// newTrainer compiles the workload. Close the trainer after use.
func (w workload) newTrainer(c engine.Compiler, shards int) (_ *trainer, err error) {
	t := &trainer{}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if t.forward, err = w.model(); err != nil {
		return nil, err
	}
	withLoss, err := attachLoss(t.forward)
	if err != nil {
		return nil, err
	}
	net, values, err := models.FromModel(withLoss, models.Options{})
	if err != nil {
		return nil, err
	}
	t.net = net
	if t.params, err = models.NewParams(net, nil); err != nil {
		return nil, err
	}
	if err := t.params.Load(values); err != nil {
		return nil, err
	}
	cfg := program.Config{
		Engine: c, Batch: max(1, w.batch), Shards: shards,
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: loss.Output}}}},
	}
	if w.batch > 0 {
		cfg.BatchSymbol = batchSymbol
	}
	if t.program, err = program.New(net, t.params, cfg); err != nil {
		return nil, err
	}
	t.fill(rng.New(2).Stream())
	return t, t.optimizer()
}

// attachLoss appends the loss on the output "y". The outputs that only inform are dropped: a step
// that nobody watches does not compute them.
func attachLoss(m *onnx.Model) (*onnx.Model, error) {
	out, _, err := loss.Attach(m, []loss.Term{{Output: "y", Kind: "mse"}})
	if err != nil {
		return nil, err
	}
	out.Graph.Output = slices.DeleteFunc(out.Graph.Output, func(v *onnx.ValueInfo) bool { return v.Name != loss.Output })
	return onnx.Prune(out)
}

func (t *trainer) optimizer() error {
	seg := t.params.Segment(models.Trainable)
	list := make([]optim.Param, len(seg.Specs()))
	for i, s := range seg.Specs() {
		off, n := seg.Range(i)
		list[i] = optim.Param{Name: s.Name, Offset: off, Len: n}
	}
	cfg := optim.Config{Kind: "adam", LR: learningRate}
	var err error
	if t.groups, err = optim.Groups(cfg, seg.Floats(), t.program.Gradients(0).Floats(), list); err != nil {
		return err
	}
	t.opt, err = optim.New(cfg, optim.WithPool(t.program.Pool()))
	return err
}

// fill draws a batch.
func (t *trainer) fill(s *rng.Stream) {
	for _, name := range t.program.Inputs() {
		in := t.program.Input(name)
		if in.DType() != tensor.Float32 {
			continue
		}
		x := in.Float32s()
		if name == loss.WeightInput {
			for i := range x {
				x[i] = 1 / float32(len(x))
			}
			continue
		}
		s.FillNormal32(x, 0, 1)
	}
}

// step is one training step.
func (t *trainer) step() error {
	if err := t.program.Run(); err != nil {
		return err
	}
	if _, _, err := optim.ClipGlobalNorm(t.groups, maxNorm); err != nil {
		return err
	}
	return t.opt.Step(t.groups)
}

// check makes sure that the step learns: a benchmark of wrong gradients would be worth nothing.
func (t *trainer) check() error {
	at := func() (float64, error) {
		err := t.program.Run()
		return float64(t.program.Output(loss.Output).Float32s()[0]), err
	}
	before, err := at()
	if err != nil {
		return err
	}
	for range 50 {
		if err := t.step(); err != nil {
			return err
		}
	}
	after, err := at()
	if err != nil {
		return err
	}
	if !(after < before) || math.IsInf(before, 0) {
		return fmt.Errorf("the loss went from %g to %g in 50 steps: the step does not learn", before, after)
	}
	return nil
}

// parameters counts what is trained.
func (t *trainer) parameters() int {
	n := 0
	for _, s := range t.params.Segment(models.Trainable).Specs() {
		n += s.Len()
	}
	return n
}

// nodes describes the compiled graph's size.
func (t *trainer) nodes() string {
	n := len(t.program.Graph().Model.Graph.Node)
	return strings.Join([]string{fmt.Sprintf("%d parameters", t.parameters()), fmt.Sprintf("%d nodes", n)}, ", ")
}

// Close frees everything.
func (t *trainer) Close() error {
	var errs []error
	if t.program != nil {
		errs = append(errs, t.program.Close())
	}
	if t.params != nil {
		errs = append(errs, t.params.Close())
	}
	return errors.Join(errs...)
}
