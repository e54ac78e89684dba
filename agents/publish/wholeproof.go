package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/meta"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The states in which a model remembers who is in charge, and what may be held.
const (
	sharesState = "state/router/shares"
	heldState   = "state/router/held"
)

// wholeProof compares a composed model, step by step, with the environment in which its router was
// trained.
type wholeProof struct {
	w      *composed
	e      envs.Env
	router *served.Actor
	// actor is the model in the environment inside, and batch the same of three rows, of which the
	// middle one is the present step and the others are earlier ones.
	actor *served.Actor
	batch *served.Policy
	ts    *envs.TimeStep // of the environment inside, with the account
	shown envs.Dict      // by that environment
	// account is what the model observes of it, nil where it does not.
	account meta.Account
	first   float64 // its value when the episode began
	heads   []int
	greedy  bool // the router decides, and not chance
	choice  []float64
	margin  float64 // of the router's choice
	hold    []bool  // its choice of assets, nil without one
	scratch []float64

	report bake.Report
	// decisions are those of the router, masked those of them in which an expert might not be
	// chosen, limited the steps at which positions were cut, and without the decisions that leave
	// assets out.
	decisions, masked, limited, without int
	want                                []float64
	kept                                []goldenRow
}

type goldenRow struct{ in, out map[string]*tensor.Tensor }

func newWholeProof(ctx context.Context, w *composed, e envs.Env, in *meta.Env) (_ *wholeProof, err error) {
	p := &wholeProof{w: w, e: e, heads: envs.Heads(w.a.spec.Action), choice: make([]float64, len(w.experts))}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
		}
	}()
	outer, err := newPreprocessing(w.o.Environments, e)
	if err != nil {
		return nil, err
	}
	if p.router, err = rowsOf(ctx, w.router, w.o, outer); err != nil {
		return nil, fmt.Errorf("router: %w", err)
	}
	a := w.a
	if _, scales := w.model.Meta(bake.MetaScales); !scales {
		a.Tables = nil
	}
	if p.actor, err = rowsOf(ctx, w.model, w.o, a); err != nil {
		return nil, err
	}
	if p.batch, err = served.New(ctx, w.model, w.o.Engine, 3); err != nil {
		return nil, err
	}
	spec := w.a.spec
	p.ts = envs.NewTimeStep(spec)
	p.shown = in.Unwrap().Spec().Observation
	if own := w.a.Account; own != nil && spec.Observation.Index(own.Field) >= 0 && p.shown.Index(own.Field) < 0 {
		var ok bool
		if p.account, ok = wrap.Find[meta.Account](in.Unwrap()); !ok {
			return nil, errors.New("the environment inside has no account")
		}
	}
	if w.p.Choose == meta.Assets {
		n := e.Spec().Action.Shape()[0]
		if len(w.experts) > 1 {
			n--
		}
		p.hold = make([]bool, n)
	}
	if n := envs.MaskLen(spec.Action); w.a.Simplex != nil {
		p.want = make([]float64, spec.Action.Shape()[0])
		p.scratch = make([]float64, len(p.want))
	} else if n == 0 && spec.Action.DType() != tensor.Float32 {
		return nil, fmt.Errorf("actions of %v cannot be compared", spec.Action)
	}
	in.Watch(p.step)
	return p, nil
}

// rowsOf joins a model of one row to environments.
func rowsOf(ctx context.Context, m *onnx.Model, o WholeOptions, a preprocessing) (*served.Actor, error) {
	one, err := served.New(ctx, m, o.Engine, 1)
	if err != nil {
		return nil, err
	}
	options := a.options()
	if _, scales := m.Meta(bake.MetaScales); !scales {
		options.Tables = nil
	}
	actor, err := served.NewActor(one, a.spec, options)
	if err != nil {
		return nil, errors.Join(err, one.Close())
	}
	return actor, nil
}

// Close frees the models.
func (p *wholeProof) Close() error {
	var errs []error
	for _, a := range []*served.Actor{p.router, p.actor} {
		if a != nil {
			errs = append(errs, a.Close())
		}
	}
	if p.batch != nil {
		errs = append(errs, p.batch.Close())
	}
	return errors.Join(errs...)
}

// run plays episodes until so many steps of the environment inside are compared, at least two of
// them. One that goes on for half of the steps is cut off, as it may have no end.
func (p *wholeProof) run(ctx context.Context, rows int) error {
	spec := p.e.Spec()
	ts, action := envs.NewTimeStep(spec), tensor.New(spec.Action.DType(), spec.Action.Shape()...)
	key := rng.New(p.w.o.Router.Seed).Split("whole")
	draws := key.Split("actions").Stream()
	for episode := 0; p.report.Rows < rows || episode < 2; episode++ {
		if err := p.e.Reset(key.Split("episode", episode), ts); err != nil {
			return &observationError{err}
		}
		p.greedy = episode%2 == 0
		p.report.Episodes++
		for begun := p.report.Rows; ts.Type != envs.Last && p.report.Rows-begun < max(1, rows/2); {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := p.router.Observe(0, ts); err != nil {
				return err
			}
			d, err := p.router.Decide()
			if err != nil {
				return err
			}
			p.decided(d)
			copy(action.Bytes(), d.Actions.Bytes())
			if !p.greedy {
				var mask []bool
				if ts.Mask != nil {
					mask = ts.Mask.Bools()
				}
				spec.Action.Sample(draws, mask, action)
			}
			if err := p.e.Step(action, ts); err != nil {
				return err
			}
		}
	}
	return nil
}

// decided keeps what the router has chosen.
func (p *wholeProof) decided(d *vector.Decision) {
	p.margin = 1
	if d.Actions.DType() == tensor.Int64 {
		heads := d.Actions.Int64s()
		for i := range p.hold {
			p.hold[i] = heads[i] == 1
		}
		chosen := int64(0)
		if heads = heads[len(p.hold):]; len(heads) > 0 {
			chosen = heads[0]
		}
		clear(p.choice)
		p.choice[chosen] = 1
		if by := p.router.Policy().Output(agents.LogProbsOutput); by != nil {
			sizes := slices.Repeat([]int{2}, len(p.hold))
			if rest := by.Len() - 2*len(p.hold); rest > 0 {
				sizes = append(sizes, rest)
			}
			p.margin = bake.LeastMargin(by.Float32s(), sizes)
		}
	}
}

// step compares one step of the environment inside.
func (p *wholeProof) step(in meta.Inner) error {
	if err := p.observe(in.TimeStep, in.Mask); err != nil {
		return err
	}
	m := p.actor.Policy()
	before := tensorsOf(m.Inputs(), m.Input)
	d, err := p.actor.Decide()
	if err != nil {
		return err
	}
	p.report.Rows++
	if in.Factor < 1 {
		p.limited++
	}
	if err := p.rows(before, m); err != nil {
		return err
	}
	same := true
	if in.Begins {
		if same, err = p.chosen(in, m); err != nil {
			return err
		}
	}
	if same {
		if err := p.acted(in, d, m); err != nil {
			return err
		}
	}
	if len(p.kept) < goldenRows && p.report.Rows%p.stride() == 1 && LeastMargin(m, p.heads) > bake.Margin {
		p.kept = append(p.kept, goldenRow{before, tensorsOf(m.Outputs(), m.Output)})
	}
	// Where chance has chosen, or a tie, the model follows.
	for i, s := range in.Shares {
		m.Input(sharesState).Float32s()[i] = float32(s)
	}
	for i, may := range in.Held {
		m.Input(heldState).Float32s()[i] = 0
		if may {
			m.Input(heldState).Float32s()[i] = 1
		}
	}
	return nil
}

// stride is how many steps golden rows are apart.
func (p *wholeProof) stride() int { return max(2, p.w.o.Router.Publish.Observations/(2*goldenRows)) }

// observe gives the model what the experts see, and the account.
func (p *wholeProof) observe(ts *envs.TimeStep, mask *tensor.Tensor) error {
	shown := p.shown
	for i, f := range p.w.a.spec.Observation {
		k := shown.Index(f.Name)
		if k >= 0 {
			p.ts.Obs[i], p.ts.Rows[i] = ts.Obs[k], ts.Rows[k]
			continue
		}
		if p.account == nil || f.Name != p.w.a.Account.Field {
			return fmt.Errorf("the environment inside does not show %q", f.Name)
		}
		if ts.Type == envs.First {
			p.first = p.account.Value()
		}
		p.w.a.Account.Write(p.ts.Obs[i].Float32s(), p.account.Value()/p.first, p.account.Now())
	}
	p.ts.Type, p.ts.Mask = ts.Type, mask
	return p.actor.Observe(0, p.ts)
}

// rowsApart is how many steps apart it is tried that rows of a batch do not meet: that holds for
// nearly all of them or for none.
const rowsApart = 4

// rows compares what a row gives alone and between others.
func (p *wholeProof) rows(in map[string]*tensor.Tensor, one *served.Policy) error {
	for _, name := range p.batch.Inputs() {
		t := p.batch.Input(name)
		// The last one, and the one before.
		copy(t.Rows(2, 3).Bytes(), t.Rows(0, 1).Bytes())
		copy(t.Rows(0, 1).Bytes(), t.Rows(1, 2).Bytes())
		copy(t.Rows(1, 2).Bytes(), in[name].Bytes())
	}
	if p.report.Rows%rowsApart != 0 {
		return nil
	}
	if err := p.batch.Run(); err != nil {
		return err
	}
	if LeastMargin(one, p.heads) <= bake.Margin {
		return nil
	}
	for _, name := range p.batch.Outputs() {
		if err := p.compare(name, 3, one.Output(name), p.batch.Output(name).Rows(1, 2)); err != nil {
			return err
		}
	}
	return nil
}

// compare compares numbers within bake.Tolerance, and others bit for bit.
func (p *wholeProof) compare(name string, batch int, want, got *tensor.Tensor) error {
	e := bake.ParityError{Output: name, Batch: batch, Row: p.report.Rows - 1, Want: math.NaN(), Got: math.NaN()}
	if want.DType() != tensor.Float32 {
		p.report.Values += want.Len()
		if string(want.Bytes()) != string(got.Bytes()) {
			return &e
		}
		return nil
	}
	for i, x := range want.Float32s() {
		if err := p.number(e, float64(x), float64(got.Float32s()[i])); err != nil {
			return err
		}
	}
	return nil
}

func (p *wholeProof) number(e bake.ParityError, want, got float64) error {
	p.report.Values++
	d := math.Abs(want-got) / (1 + math.Abs(want))
	if !(d <= bake.Tolerance) && want != got {
		e.Want, e.Got = want, got
		return &e
	}
	if want != got {
		p.report.MaxError = max(p.report.MaxError, d)
	}
	return nil
}

// chosen compares the mask and the choice at the beginning of a segment, and reports whether the
// model acts as the environment does.
func (p *wholeProof) chosen(in meta.Inner, m *served.Policy) (same bool, err error) {
	p.decisions++
	if slices.Contains(in.Allowed, false) {
		p.masked++
	}
	if in.Allowed != nil {
		if t := m.Output(bake.AllowedOutput); !slices.Equal(t.Bools(), in.Allowed) {
			return false, fmt.Errorf("parity: output %q, step %d: the environment allows %v, the model %v", bake.AllowedOutput, p.report.Rows-1, in.Allowed, t.Bools())
		}
	}
	shares := m.Output(bake.SharesOutput).Float32s()
	if p.w.p.Choose == meta.Mixture {
		if !p.greedy {
			return false, nil
		}
		for i, s := range in.Shares {
			if err := p.number(bake.ParityError{Output: bake.SharesOutput, Batch: 1, Row: p.report.Rows - 1}, s, float64(shares[i])); err != nil {
				return false, err
			}
		}
		return true, nil
	}
	p.report.Choices += 1 + len(p.hold)
	if slices.Contains(in.Held, false) {
		p.without++
	}
	tied := p.margin <= bake.Margin
	if tied {
		p.report.Ties++
	}
	for i, s := range p.choice {
		if float32(s) == shares[i] {
			continue
		}
		if !tied {
			return false, fmt.Errorf("parity: output %q, step %d: the router chooses %v, the model %v", bake.SharesOutput, p.report.Rows-1, p.choice, shares)
		}
		p.report.Changed++
		return false, nil
	}
	if p.hold != nil {
		if held := m.Output(bake.HeldOutput).Bools(); !slices.Equal(held, p.hold) {
			if !tied {
				return false, fmt.Errorf("parity: output %q, step %d: the router chooses %v, the model %v", bake.HeldOutput, p.report.Rows-1, p.hold, held)
			}
			p.report.Changed++
			return false, nil
		}
	}
	return slices.Equal(p.choice, in.Shares) && slices.Equal(p.hold, in.Held), nil
}

// acted compares the actions.
func (p *wholeProof) acted(in meta.Inner, d *vector.Decision, m *served.Policy) error {
	e := bake.ParityError{Output: agents.ActionOutput, Batch: 1, Row: p.report.Rows - 1}
	if p.want != nil {
		p.w.a.Simplex.Of(p.want, in.Action.Float32s())
		if in.Held != nil {
			p.w.a.Account.Restrict(p.want, in.Held, p.scratch)
		}
		p.cut(in.Factor)
		for i, w := range p.want {
			if err := p.number(e, w, float64(m.Output(agents.ActionOutput).Float32s()[i])); err != nil {
				return err
			}
		}
		return nil
	}
	if p.heads == nil {
		return p.compare(agents.ActionOutput, 1, in.Action, d.Actions)
	}
	p.report.Choices += len(p.heads)
	same := string(in.Action.Bytes()) == string(d.Actions.Bytes())
	if by := m.Output(scores(m.Outputs())); by != nil && bake.LeastMargin(by.Float32s(), p.heads) <= bake.Margin {
		p.report.Ties++
		if !same {
			p.report.Changed++
		}
		return nil
	}
	if !same {
		return fmt.Errorf("parity: output %q, step %d: the environment does %v, the model %v", agents.ActionOutput, e.Row, in.Action, d.Actions)
	}
	return nil
}

// cut limits weights as the account does where a factor multiplies its limits.
func (p *wholeProof) cut(factor float64) {
	if factor >= 1 {
		return
	}
	own := p.w.a.Account
	n, sum := len(p.want)-1, 0.0
	for i := range n {
		if own.Weight > 0 {
			p.want[i] = min(p.want[i], own.Weight*factor)
		}
		sum += p.want[i]
	}
	if most := factor * cmp.Or(own.Exposure, 1); sum > most {
		for i := range n {
			p.want[i] *= most / sum
		}
		sum = most
	}
	p.want[n] = max(1-sum, 0)
}

// golden are the rows that a version is verified with, nil where none is decided.
func (p *wholeProof) golden() *artifact.Golden {
	if len(p.kept) == 0 {
		return nil
	}
	stack := func(of func(goldenRow) map[string]*tensor.Tensor) map[string]*tensor.Tensor {
		out := map[string]*tensor.Tensor{}
		for name, t := range of(p.kept[0]) {
			out[name] = tensor.New(t.DType(), append([]int{len(p.kept)}, t.Shape()[1:]...)...)
			for i, row := range p.kept {
				copy(out[name].Rows(i, i+1).Bytes(), of(row)[name].Bytes())
			}
		}
		return out
	}
	return &artifact.Golden{Inputs: stack(func(r goldenRow) map[string]*tensor.Tensor { return r.in }), Outputs: stack(func(r goldenRow) map[string]*tensor.Tensor { return r.out })}
}
