package program

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/pool"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ErrNotSeparable is returned when a graph cannot be split over the batch, because its rows depend
// on each other.
var ErrNotSeparable = errors.New("the graph's result depends on rows of the batch together")

// Config describes a program.
type Config struct {
	// Engine compiles the graphs; Options are passed to it.
	Engine  engine.Compiler
	Options engine.Options
	// Objectives are differentiated with respect to every trainable parameter unless an objective
	// says otherwise. None makes a program that only runs forward.
	Objectives []autodiff.Objective
	// Batch is the number of rows. BatchSymbol names the symbolic extent that stands for it; inputs
	// and outputs whose first extent it is are split over shards.
	Batch       int
	BatchSymbol string
	// Bind gives numbers to the model's other symbolic extents.
	Bind map[string]int
	// Shards is the number of parallel parts, see [Split]; 0 means 1. Where they do not divide
	// Batch, the last ones are filled up with rows that no buffer shows: copies of the first, but 0
	// in the inputs that Weights names, those by which samples are weighed.
	Shards  int
	Weights []string
	// Gradients receive the gradients, one segment per objective in the layout of the trainable
	// parameters; nil makes new ones. Programs of several batch sizes share them so that one
	// optimiser reads the gradients of whichever ran last.
	Gradients []*models.Segment
	// Inputs are buffers to use for data inputs of these names instead of new ones, for instance
	// those of another program that reads the same batch. They must outlive the program.
	Inputs map[string]*tensor.Tensor
	// Pool are the goroutines that the shards run on, at least as many; the caller closes it after
	// the program. Programs that run one after the other share one, so that the goroutines of a
	// program that has run do not look for work while another one runs. nil makes a pool of the
	// program's own.
	Pool *pool.Pool
	// Updates maps buffers (running statistics) to the outputs that hold their new values. They are
	// copied after a successful run.
	Updates map[string]string
}

// Program is a compiled, bound training or evaluation graph. It is not safe for concurrent use.
type Program struct {
	cfg      Config
	params   *models.Params
	gradient *autodiff.Gradient
	inputs   map[string]*tensor.Tensor
	outputs  map[string]*tensor.Tensor
	// rows are those of a shard. padded has the whole of each buffer that shows fewer rows than the
	// shards have, and padding are the rows that fill up inputs, each with the first row.
	rows      int
	padded    map[*tensor.Tensor]*tensor.Tensor
	padding   [][2][]byte
	arenas    []*tensor.Arena
	shards    []*shard
	grads     []*models.Segment
	unreached []string
	// spans are where the gradients of each objective lie in the trainable parameters' layout:
	// pairs of the first element and one past the last.
	spans   [][][2]int
	updates [][2]*tensor.Tensor
	pool    *pool.Pool
	// The pool's functions, made once so that a run allocates nothing.
	runShard, reduceShare func(k int)
}

// shard is one part of the batch.
type shard struct {
	binding engine.Binding
	session engine.Session
	grads   []*models.Segment
	// sums pairs the unbatched float outputs of the whole with this shard's own.
	sums [][2][]float32
	err  error
}

// New differentiates, compiles and binds. params stay the caller's and must outlive the program.
// net's graph is not changed.
func New(net *models.Network, params *models.Params, cfg Config) (*Program, error) {
	if cfg.Shards == 0 {
		cfg.Shards = 1
	}
	if cfg.Shards < 1 || cfg.Batch < cfg.Shards {
		return nil, fmt.Errorf("new program: a batch of %d rows in %d shards, expected a row for each at least", cfg.Batch, cfg.Shards)
	}
	if cfg.Pool != nil && cfg.Pool.Size() < cfg.Shards {
		return nil, fmt.Errorf("new program: a pool of %d workers for %d shards", cfg.Pool.Size(), cfg.Shards)
	}
	p, err := build(net, params, cfg)
	if err != nil {
		return nil, fmt.Errorf("new program: %w", err)
	}
	if cfg.Shards > 1 {
		one := cfg
		one.Shards, one.Gradients, one.Pool, one.Inputs = 1, nil, nil, nil
		ref, err := build(net, params, one)
		if err == nil {
			err = p.proveSeparable(ref)
			err = errors.Join(err, ref.Close())
		}
		if err != nil {
			p.Close()
			return nil, fmt.Errorf("new program: %w", err)
		}
	}
	return p, nil
}

func build(net *models.Network, params *models.Params, cfg Config) (_ *Program, err error) {
	p := &Program{
		cfg: cfg, params: params, inputs: map[string]*tensor.Tensor{}, outputs: map[string]*tensor.Tensor{},
		rows: (cfg.Batch + cfg.Shards - 1) / cfg.Shards, padded: map[*tensor.Tensor]*tensor.Tensor{},
	}
	defer func() {
		if err != nil {
			p.Close()
		}
	}()
	model, err := p.differentiate(net)
	if err != nil {
		return nil, err
	}
	for k := range cfg.Shards {
		s, err := p.compile(model)
		if err != nil {
			return nil, err
		}
		p.shards = append(p.shards, s)
		if k == 0 {
			if err := p.allocate(s.session, net); err != nil {
				return nil, err
			}
		}
		if err := p.bind(s, k, net); err != nil {
			return nil, err
		}
	}
	if p.pool = cfg.Pool; p.pool == nil {
		p.pool = pool.New(cfg.Shards, pool.Spin)
	}
	p.runShard = func(k int) {
		if k < len(p.shards) {
			p.shards[k].err = p.shards[k].binding.Run()
		}
	}
	p.reduceShare = func(k int) { p.reduce(k) }
	for name, out := range cfg.Updates {
		dst, src := params.View(name), p.outputs[out]
		if dst == nil || src == nil {
			return nil, fmt.Errorf("update of buffer %q from output %q: no such buffer or output", name, out)
		}
		p.updates = append(p.updates, [2]*tensor.Tensor{dst, src})
	}
	return p, nil
}

// differentiate builds the graph of one shard.
func (p *Program) differentiate(net *models.Network) (*onnx.Model, error) {
	bind := map[string]int{}
	for k, v := range p.cfg.Bind {
		bind[k] = v
	}
	if p.cfg.BatchSymbol != "" {
		bind[p.cfg.BatchSymbol] = p.rows
	}
	if len(p.cfg.Objectives) == 0 {
		m := net.Model.ShallowClone()
		bindDims(m.Graph, bind)
		if p.cfg.Shards > 1 {
			env, err := shape.Infer(m, nil)
			if err != nil {
				return nil, err
			}
			return m, separableShapes(m, env)
		}
		return m, nil
	}
	var trainable []string
	for _, s := range net.Specs {
		if s.Role == models.Trainable {
			trainable = append(trainable, s.Name)
		}
	}
	objs := slices.Clone(p.cfg.Objectives)
	for i := range objs {
		if objs[i].Wrt == nil {
			objs[i].Wrt = trainable
		}
	}
	g, err := autodiff.Grad(net.Model, autodiff.Options{Objectives: objs, Bind: bind})
	if err != nil {
		return nil, err
	}
	p.gradient = g
	for _, outs := range g.Outputs {
		for _, o := range outs {
			if o.Unreached {
				p.unreached = append(p.unreached, o.Wrt)
			}
		}
	}
	if p.cfg.Shards > 1 {
		return g.Model, separableShapes(g.Model, g.Env)
	}
	return g.Model, nil
}

// separableShapes refuses graphs with shapes that depend on the data: the rows of a batch choose
// them together, such as the periods of a spectrum, and other batches than the random one of the
// proof may choose otherwise.
func separableShapes(m *onnx.Model, env *shape.Env) error {
	for _, n := range m.Graph.Node {
		for _, o := range n.Output {
			t := env.Type(onnx.Value(o))
			if o != "" && (!t.Ranked || slices.ContainsFunc(t.Dims, env.DependsOnData)) {
				return fmt.Errorf("%w: the shape of %q (%v) depends on the data", ErrNotSeparable, o, t)
			}
		}
	}
	return nil
}

func bindDims(g *onnx.Graph, bind map[string]int) {
	for _, list := range [][]*onnx.ValueInfo{g.Input, g.Output} {
		for _, v := range list {
			if t, ok := v.TensorType(); ok {
				v.Type = onnx.NewValueInfo("", t.Bind(bind)).Type
			}
		}
	}
	g.ValueInfo = nil
}

func (p *Program) compile(m *onnx.Model) (*shard, error) {
	o := p.cfg.Options
	o.Training = len(p.cfg.Objectives) > 0
	s, err := p.cfg.Engine.Compile(m, o)
	if err != nil {
		return nil, err
	}
	return &shard{session: s}, nil
}

// isBatched reports whether the network declares the batch symbol as the first extent of an input
// or output.
func (p *Program) isBatched(list []*onnx.ValueInfo, name string) bool {
	for _, v := range list {
		if v.Name == name {
			t, ok := v.TensorType()
			return ok && t.Ranked && len(t.Dims) > 0 && p.cfg.BatchSymbol != "" && t.Dims[0].Param == p.cfg.BatchSymbol
		}
	}
	return false
}

// arenaTensor makes a buffer with an arena of its own.
func (p *Program) arenaTensor(d tensor.DType, shape []int) (*tensor.Tensor, error) {
	n, err := tensor.Len(shape)
	if err != nil {
		return nil, err
	}
	a, err := tensor.NewArena(d.ByteLen(n))
	if err != nil {
		return nil, err
	}
	p.arenas = append(p.arenas, a)
	return a.Tensor(d, 0, shape...)
}

// buffer makes an input or output for all rows of the batch; shape is one shard's.
func (p *Program) buffer(d tensor.DType, shape []int, batched bool) (*tensor.Tensor, error) {
	if !batched {
		return p.arenaTensor(d, shape)
	}
	shape = slices.Clone(shape)
	shape[0] = p.rows * p.cfg.Shards
	t, err := p.arenaTensor(d, shape)
	if err != nil || shape[0] == p.cfg.Batch {
		return t, err
	}
	shown := t.Rows(0, p.cfg.Batch)
	p.padded[shown] = t
	return shown, nil
}

// part returns the rows of shard k in a buffer.
func (p *Program) part(t *tensor.Tensor, k int, batched bool) *tensor.Tensor {
	if !batched {
		return t
	}
	if whole := p.padded[t]; whole != nil {
		t = whole
	}
	return t.Rows(k*p.rows, (k+1)*p.rows)
}

// allocate makes the batch and output buffers of the whole batch, from the ports of the first
// shard.
func (p *Program) allocate(s engine.Session, net *models.Network) error {
	gradNames := p.gradientNames()
	for _, port := range s.Inputs() {
		if p.params.View(port.Name) != nil {
			continue
		}
		batched := p.isBatched(net.Model.Graph.Input, port.Name)
		if t := p.cfg.Inputs[port.Name]; t != nil {
			shape := slices.Clone(port.Shape)
			if batched {
				shape[0] = p.rows * p.cfg.Shards
			}
			if t.DType() != port.DType || !slices.Equal(t.Shape(), shape) {
				return fmt.Errorf("input %q: the buffer given is %v, expected %v%v", port.Name, t, port.DType, shape)
			}
			p.inputs[port.Name] = t
			continue
		}
		t, err := p.buffer(port.DType, port.Shape, batched)
		if err != nil {
			return fmt.Errorf("input %q: %w (bind its symbolic extents)", port.Name, err)
		}
		p.inputs[port.Name] = t
		if whole := p.padded[t]; whole != nil && !slices.Contains(p.cfg.Weights, port.Name) {
			b, n := whole.Bytes(), len(t.Bytes())
			for row := b[:n/p.cfg.Batch]; n < len(b); n += len(row) {
				p.padding = append(p.padding, [2][]byte{b[n:], row})
			}
		}
	}
	for _, port := range s.Outputs() {
		if _, ok := gradNames[port.Name]; ok {
			continue
		}
		t, err := p.buffer(port.DType, port.Shape, p.isBatched(net.Model.Graph.Output, port.Name))
		if err != nil {
			return fmt.Errorf("output %q: %w (its shape is not static)", port.Name, err)
		}
		p.outputs[port.Name] = t
	}
	return nil
}

// gradientNames maps gradient outputs to the objective and the parameter they belong to.
func (p *Program) gradientNames() map[string]gradientOf {
	out := map[string]gradientOf{}
	if p.gradient == nil {
		return out
	}
	for i, outs := range p.gradient.Outputs {
		for _, o := range outs {
			out[o.Name] = gradientOf{objective: i, param: o.Wrt}
		}
	}
	return out
}

type gradientOf struct {
	objective int
	param     string
}

// bind fixes the buffers of shard k.
func (p *Program) bind(s *shard, k int, net *models.Network) error {
	if tr := p.params.Segment(models.Trainable); tr != nil && p.gradient != nil {
		for i := range p.gradient.Outputs {
			g, err := p.gradientSegment(tr, k, i)
			if err != nil {
				return err
			}
			s.grads = append(s.grads, g)
		}
		if k == 0 {
			p.grads = s.grads
			p.spans = spansOf(tr, p.gradient.Outputs)
		}
	}
	var in, out []*tensor.Tensor
	for _, port := range s.session.Inputs() {
		if v := p.params.View(port.Name); v != nil {
			in = append(in, v)
		} else {
			in = append(in, p.part(p.inputs[port.Name], k, p.isBatched(net.Model.Graph.Input, port.Name)))
		}
	}
	gradNames := p.gradientNames()
	for _, port := range s.session.Outputs() {
		if g, ok := gradNames[port.Name]; ok {
			v, err := p.gradientView(s, k, g, port, p.isBatched(net.Model.Graph.Input, g.param))
			if err != nil {
				return err
			}
			out = append(out, v)
			continue
		}
		t, batched := p.outputs[port.Name], p.isBatched(net.Model.Graph.Output, port.Name)
		if k > 0 && !batched {
			own, err := p.arenaTensor(t.DType(), t.Shape())
			if err != nil {
				return err
			}
			if t.DType() == tensor.Float32 {
				s.sums = append(s.sums, [2][]float32{t.Float32s(), own.Float32s()})
			}
			t = own
		}
		out = append(out, p.part(t, k, batched))
	}
	var err error
	s.binding, err = s.session.Bind(out, in)
	return err
}

// gradientSegment returns where shard k puts the gradients of objective i: the first shard where
// the caller wants them, the others into segments of their own.
func (p *Program) gradientSegment(trainable *models.Segment, k, i int) (*models.Segment, error) {
	if k > 0 || p.cfg.Gradients == nil {
		return trainable.Like()
	}
	if len(p.cfg.Gradients) != len(p.gradient.Outputs) || !p.cfg.Gradients[i].SameLayout(trainable) {
		return nil, fmt.Errorf("gradients: %d segments for %d objectives, or not in the layout of the trainable parameters", len(p.cfg.Gradients), len(p.gradient.Outputs))
	}
	return p.cfg.Gradients[i].Share(), nil
}

// gradientView returns where a gradient output of shard k goes: into the shard's gradient segment
// when it belongs to a parameter, else into an output buffer, of which each shard fills its rows.
func (p *Program) gradientView(s *shard, k int, g gradientOf, port engine.Port, batched bool) (*tensor.Tensor, error) {
	if tr := p.params.Segment(models.Trainable); tr != nil {
		for i, spec := range tr.Specs() {
			if spec.Name == g.param {
				return s.grads[g.objective].View(i), nil
			}
		}
	}
	if p.cfg.Shards > 1 && !batched {
		return nil, fmt.Errorf("gradient of %q: gradients of values without the batch as their first extent need a program of one shard", g.param)
	}
	if k == 0 {
		t, err := p.buffer(port.DType, port.Shape, batched)
		if err != nil {
			return nil, err
		}
		p.outputs[port.Name] = t
	}
	return p.part(p.outputs[port.Name], k, batched), nil
}

// Input returns the batch buffer of a data input, or nil when there is none of that name. Fill it
// before Run; it keeps its content between runs.
func (p *Program) Input(name string) *tensor.Tensor { return p.inputs[name] }

// Inputs returns the names of all batch buffers, sorted.
func (p *Program) Inputs() []string {
	var names []string
	for n := range p.inputs {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Output returns the buffer of an output, or nil when there is none of that name. Its content is
// valid after Run until the next Run.
func (p *Program) Output(name string) *tensor.Tensor { return p.outputs[name] }

// Gradients returns the gradients of objective i in the layout of the trainable parameters. They
// are valid after Run until the next Run.
func (p *Program) Gradients(i int) *models.Segment { return p.grads[i] }

// Graph returns the differentiated graph of one shard, or nil for a program without objectives.
func (p *Program) Graph() *autodiff.Gradient { return p.gradient }

// Pool returns the goroutines that the shards run on, for other work on the same loop such as the
// optimiser's. It is nil for a program of one shard.
func (p *Program) Pool() *pool.Pool {
	if len(p.shards) == 1 {
		return nil
	}
	return p.pool
}

// Unreached names the trainable parameters that no loss depends on; their gradients are zero.
func (p *Program) Unreached() []string { return p.unreached }

// Run executes the program once on the buffers' contents. It allocates nothing.
func (p *Program) Run() error {
	for _, row := range p.padding {
		copy(row[0], row[1])
	}
	if len(p.shards) == 1 {
		p.runShard(0)
	} else {
		p.pool.Run(p.runShard)
	}
	for _, s := range p.shards {
		if s.err != nil {
			return s.err
		}
	}
	if len(p.shards) > 1 && len(p.shards[1].grads)+len(p.shards[1].sums) > 0 {
		p.pool.Run(p.reduceShare)
	}
	for _, u := range p.updates {
		copy(u[0].Bytes(), u[1].Bytes())
	}
	return nil
}

// Close frees sessions and buffers. The parameters stay.
func (p *Program) Close() error {
	var errs []error
	if p.cfg.Pool == nil {
		p.pool.Close()
	}
	for _, s := range p.shards {
		if s.binding != nil {
			errs = append(errs, s.binding.Close())
		}
		errs = append(errs, s.session.Close())
		for _, g := range s.grads {
			errs = append(errs, g.Close())
		}
	}
	for _, a := range p.arenas {
		errs = append(errs, a.Close())
	}
	p.shards, p.arenas, p.grads = nil, nil, nil
	return errors.Join(errs...)
}
