package decisions

import (
	"encoding/binary"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/decisionlog"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// headsKey is the metadata key with the numbers of alternatives of the action's heads, separated by
// commas.
const headsKey = bake.MetaPrefix + "heads"

// policy is what is known of a version.
type policy struct {
	// batch says that inputs have rows.
	batch bool
	// heads are nil where the metadata do not tell.
	heads []int
	// starts are the first alternatives of the heads as actions have them; nil is 0 for all.
	starts   []int64
	squashed bool
	// scales are those of squashed components, or one of all, and nil where the metadata do not
	// tell.
	scales []float64
	layout atomic.Pointer[decisionlog.Layout]
	// told says that a warning was given.
	told atomic.Bool

	// mu guards the scales of squashed components where the metadata do not tell them, and how well
	// each is known: the difference that it was divided by.
	mu          sync.Mutex
	half, known []float64
}

// of returns what is known of a version that has just answered.
func (l *Log) of(model, name, digest string) (*policy, error) {
	k := version{model, name, digest}
	l.known.Lock()
	defer l.known.Unlock()
	if p := l.policy[k]; p != nil {
		return p, nil
	}
	m, err := l.Service.Metadata(model, name)
	if err != nil {
		// It may have been replaced meanwhile; what is known of the model's newest one will do.
		if m, err = l.Service.Metadata(model, ""); err != nil {
			return nil, err
		}
	}
	p := &policy{batch: m.MaxBatch > 0, squashed: m.Info[bake.MetaSquash] != ""}
	// The server has read them already.
	if spaces, err := artifact.ParseSpaces(m.Info[artifact.SpacesKey]); err == nil {
		p.starts = spaces.Outputs[Action].Start
	}
	if text := m.Info[headsKey]; text != "" {
		for part := range strings.SplitSeq(text, ",") {
			n, err := strconv.Atoi(part)
			if err != nil || n < 1 {
				p.heads = nil
				break
			}
			p.heads = append(p.heads, n)
		}
	}
	if text := m.Info[bake.MetaSquashScale]; text != "" {
		for part := range strings.SplitSeq(text, ",") {
			x, err := strconv.ParseFloat(part, 64)
			if err != nil || !(x > 0 && x <= math.MaxFloat64) {
				p.scales = nil
				break
			}
			p.scales = append(p.scales, x)
		}
	}
	l.policy[k] = p
	return p, nil
}

// start is the first alternative of a head.
func (p *policy) start(head int) int64 {
	if head >= len(p.starts) {
		return 0
	}
	return p.starts[head]
}

// answer is what a version has given.
type answer struct {
	list []serve.Tensor
	// noise is that of the sample, nil without. drawn says that the action was drawn here, and best
	// are then the bytes of the best one, where a sample took its place.
	noise *tensor.Tensor
	drawn bool
	best  []byte
}

// get is an output, nil where there is none.
func (a *answer) get(name string) *tensor.Tensor {
	for i := range a.list {
		if a.list[i].Name == name {
			return a.list[i].Value
		}
	}
	return nil
}

// discrete reports whether actions are choices.
func discrete(action *tensor.Tensor) bool {
	return action.DType() != tensor.Float32 && action.DType() != tensor.Float64
}

// table returns the log-probabilities of a row of n, and the numbers of alternatives of the heads;
// nil where the model does not give them.
func (p *policy) table(a *answer, action *tensor.Tensor, i, n int) ([]float32, []int) {
	t := a.get(scores)
	if t == nil || t.DType() != tensor.Float32 || t.Len()%n != 0 || action.Len()%n != 0 || !discrete(action) {
		return nil, nil
	}
	w, heads := t.Len()/n, p.heads
	if heads == nil && action.Len() == n {
		heads = []int{w}
	}
	sum := 0
	for _, k := range heads {
		sum += k
	}
	if sum != w || len(heads) != action.Len()/n {
		return nil, nil
	}
	return t.Float32s()[i*w : (i+1)*w], heads
}

// draw replaces the actions of an answer by others that are drawn by their probabilities; it is
// false where these are not known.
func (p *policy) draw(a *answer, s *rng.Stream) bool {
	action := a.get(Action)
	if action == nil {
		return false
	}
	n := 1
	if p.batch && action.Rank() > 0 {
		n = action.Shape()[0]
	}
	for i := range n {
		table, heads := p.table(a, action, i, n)
		if table == nil {
			return false
		}
		for h, k := range heads {
			put(action, i*len(heads)+h, int(p.start(h))+s.Categorical(table[:k]))
			table = table[k:]
		}
	}
	return true
}

// logProb is the logarithm of the probability, or density, of the action of a row of n.
func (p *policy) logProb(a *answer, action *tensor.Tensor, i, n int) float64 {
	if !a.drawn && a.noise == nil {
		if discrete(action) {
			return 0
		}
		return math.NaN()
	}
	if discrete(action) {
		table, heads := p.table(a, action, i, n)
		if table == nil {
			return math.NaN()
		}
		sum := 0.0
		for h, k := range heads {
			at := element(action, i*len(heads)+h) - int(p.start(h))
			if at < 0 || at >= k {
				return math.NaN()
			}
			sum, table = sum+float64(table[at]), table[k:]
		}
		return sum
	}
	return p.density(a, action, i, n)
}

// density is the logarithm of the density of a Gaussian's action, in the units of the action.
func (p *policy) density(a *answer, action *tensor.Tensor, i, n int) float64 {
	mean, std := a.get(means), a.get(logStds)
	if mean == nil || std == nil || mean.DType() != tensor.Float32 || std.DType() != tensor.Float32 || action.DType() != tensor.Float32 || a.noise.DType() != tensor.Float32 {
		return math.NaN()
	}
	k := mean.Len() / n
	if k == 0 || std.Len() != k*n || action.Len() != k*n || a.noise.Len() != k*n {
		return math.NaN()
	}
	at, sum := i*k, 0.0
	for c := range k {
		m, s, z, x := float64(mean.Float32s()[at+c]), float64(std.Float32s()[at+c]), float64(a.noise.Float32s()[at+c]), float64(action.Float32s()[at+c])
		if p.squashed {
			u := m + math.Exp(s)*z
			h := p.scale(a, at+c, c, k, u, m, x)
			// log(1 − tanh²u), which is even in u, without cancellation or overflow.
			d := math.Abs(u)
			sum -= math.Log(h) + 2*(math.Ln2-d-math.Log1p(math.Exp(-2*d)))
		} else {
			// An action that was cut off at a bound counts as the bound, as it does in package ope.
			z = (x - m) / math.Exp(s)
		}
		sum += -z*z/2 - s - math.Log(2*math.Pi)/2
	}
	return sum
}

// enough is a difference of hyperbolic tangents whose rounding does not matter. Of one below little
// nothing can be told: where both are 1 as float32, the sample is the best action.
const enough, little = 0.5, 1e-3

// scale is half of the width of a component's bounds. Where the metadata do not say it, it is found
// out: the sample and the best action are as far from each other as tanh of what they are made of,
// times that. It is kept from the decision in which they were farthest apart, and NaN before one in
// which they were far enough.
func (p *policy) scale(a *answer, at, c, k int, u, m, x float64) float64 {
	switch len(p.scales) {
	case 1:
		return p.scales[0]
	case k:
		return p.scales[c]
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.half) != k {
		p.half, p.known = make([]float64, k), make([]float64, k)
		for i := range p.half {
			p.half[i] = math.NaN()
		}
	}
	if d := math.Abs(math.Tanh(u) - math.Tanh(m)); p.known[c] < enough && d > max(little, p.known[c]) {
		best := float64(0)
		if a.best != nil {
			best = float64(math.Float32frombits(binary.LittleEndian.Uint32(a.best[4*at:])))
		} else if b := a.get(Action); b != nil && b.DType() == tensor.Float32 && b.Len() > at {
			best = float64(b.Float32s()[at])
		} else {
			return p.half[c]
		}
		p.half[c], p.known[c] = math.Abs(x-best)/d, d
	}
	return p.half[c]
}

// element and put read and write a choice.
func element(t *tensor.Tensor, i int) int {
	switch t.DType() {
	case tensor.Int64:
		return int(t.Int64s()[i])
	case tensor.Int32:
		return int(t.Int32s()[i])
	}
	return int(t.Bytes()[i])
}

func put(t *tensor.Tensor, i, x int) {
	switch t.DType() {
	case tensor.Int64:
		t.Int64s()[i] = int64(x)
	case tensor.Int32:
		t.Int32s()[i] = int32(x)
	default:
		t.Bytes()[i] = byte(x)
	}
}

// layoutOf describes rows of inputs and an action; nil where a log has no place for them.
func (p *policy) layoutOf(inputs []serve.Tensor, action *tensor.Tensor) *decisionlog.Layout {
	is := func(c decisionlog.Column, name string, t *tensor.Tensor) bool { return c == p.column(name, t) }
	if l := p.layout.Load(); l != nil {
		k, same := 0, is(l.Action, Action, action)
		for _, in := range inputs {
			if in.Name == bake.NoiseInput {
				continue
			}
			same = same && k < len(l.Obs) && is(l.Obs[k], in.Name, in.Value)
			k++
		}
		if same && k == len(l.Obs) {
			return l
		}
	}
	l := &decisionlog.Layout{Action: p.column(Action, action)}
	ok := decisionlog.Supported(l.Action.DType)
	for _, in := range inputs {
		if in.Name != bake.NoiseInput {
			c := p.column(in.Name, in.Value)
			l.Obs, ok = append(l.Obs, c), ok && decisionlog.Supported(c.DType)
		}
	}
	if !ok {
		return nil
	}
	p.layout.Store(l)
	return l
}

func (p *policy) column(name string, t *tensor.Tensor) decisionlog.Column {
	c := decisionlog.Column{Name: name, DType: t.DType(), N: t.Len(), List: t.Rank() > 0}
	if p.batch {
		if c.List = t.Rank() > 1; t.Rank() > 0 && t.Shape()[0] > 0 {
			c.N /= t.Shape()[0]
		}
	}
	return c
}
