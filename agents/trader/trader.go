package trader

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/drift"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Trader serves a market agent from bars: a feed, a portfolio that begins all in cash, and the
// model between them. It is not safe for concurrent use.
type Trader struct {
	Feed      *live.Feed
	Portfolio *live.Portfolio

	one    *served.Policy
	scales bool // the model scales by itself
	inputs []input
	action *tensor.Tensor
	// weights [N+1] are the action where it is target weights; nil where it is orders.
	weights []float64
	experts *traded // nil where there are none
	// drift compares what the policy sees, of which seen are the inputs; nil where the model does
	// not say what it was published on.
	drift *drift.Monitor
	seen  []*tensor.Tensor
}

// input is one of the model's, and what the feed and the portfolio have for it.
type input struct {
	name string
	to   *tensor.Tensor
	from func() *tensor.Tensor
}

// New makes a trader of a published market agent from what its manifest says. The feed has
// seen no bar. Edits such as data.source.timezone=UTC or fee_rate=0 change the configuration of
// data and environment in the manifest, never the features. Close the trader before the compiler.
func New(ctx context.Context, v artifact.Version, c engine.Compiler, edits ...string) (*Trader, error) {
	t, err := openTrader(ctx, v, c, edits)
	if err != nil {
		return nil, fmt.Errorf("trade with %v: %w", v, err)
	}
	return t, nil
}

func openTrader(ctx context.Context, v artifact.Version, c engine.Compiler, edits []string) (*Trader, error) {
	p, err := pipelineOf(v, edits)
	if err != nil {
		return nil, err
	}
	rules, err := tradingConfig(p)
	if err != nil {
		return nil, err
	}
	return withModel(ctx, v, c, func(one *served.Policy) (*Trader, error) { return newTrader(p, rules, one) })
}

// Beside makes a trader of another version that has the feed and the portfolio of t: what it
// decides is about the same holdings, and is executed where it is given to the portfolio. The
// version must have the features and the assets of t. Close both.
func (t *Trader) Beside(ctx context.Context, v artifact.Version, c engine.Compiler, edits ...string) (*Trader, error) {
	other, err := t.beside(ctx, v, c, edits)
	if err != nil {
		return nil, fmt.Errorf("trade with %v: %w", v, err)
	}
	return other, nil
}

func (t *Trader) beside(ctx context.Context, v artifact.Version, c engine.Compiler, edits []string) (*Trader, error) {
	p, err := pipelineOf(v, edits)
	if err != nil {
		return nil, err
	}
	own := t.Feed.Pipeline()
	if !slices.Equal(p.Assets, own.Assets) {
		return nil, fmt.Errorf("its assets are %v, expected %v", p.Assets, own.Assets)
	}
	if p.Window != own.Window || !slices.Equal(p.Features, own.Features) || !slices.Equal(p.Extra, own.Extra) || !slices.Equal(p.Quotes, own.Quotes) {
		return nil, errors.New("its features, with their window and their scales, are others than those of the policy that trades")
	}
	rules, err := tradingConfig(p)
	if err != nil {
		return nil, err
	}
	return withModel(ctx, v, c, func(one *served.Policy) (*Trader, error) { return tradeWith(t.Feed, t.Portfolio, rules, one) })
}

// pipelineOf is how bars become the features of a version.
func pipelineOf(v artifact.Version, edits []string) (live.Pipeline, error) {
	if len(v.Manifest.Features) == 0 {
		return live.Pipeline{}, errors.New("its manifest has no features: it is no market agent")
	}
	p, err := live.ParsePipeline(v.Manifest.Features)
	if err != nil {
		return p, err
	}
	return p.Edit(edits...)
}

// withModel gives the model of a version to what makes a trader of it.
func withModel(ctx context.Context, v artifact.Version, c engine.Compiler, trade func(*served.Policy) (*Trader, error)) (*Trader, error) {
	m, err := v.Model()
	if err != nil {
		return nil, err
	}
	one, err := served.New(ctx, m, c, 1)
	if err != nil {
		return nil, err
	}
	t, err := trade(one)
	if err != nil {
		return nil, errors.Join(err, one.Close())
	}
	return t, nil
}

// newTrader joins a policy to a feed and a portfolio that have seen nothing. The policy remains the
// caller's until Close.
func newTrader(p live.Pipeline, rules trading.Config, one *served.Policy) (*Trader, error) {
	f, err := live.New(p)
	if err != nil {
		return nil, err
	}
	portfolio, err := live.NewPortfolio(rules, f)
	if err != nil {
		return nil, err
	}
	return tradeWith(f, portfolio, rules, one)
}

// tradeWith is newTrader with a feed and a portfolio.
func tradeWith(f *live.Feed, portfolio *live.Portfolio, rules trading.Config, one *served.Policy) (*Trader, error) {
	p := f.Pipeline()
	t := &Trader{Feed: f, Portfolio: portfolio, one: one, action: one.Output(agents.ActionOutput)}
	_, t.scales = one.Meta(bake.MetaScales)
	var err error
	if t.experts, err = tradedExperts(one); err != nil {
		return nil, err
	}
	n := len(p.Assets)
	one.Begin(0)
	for _, name := range one.Inputs() {
		if name == bake.NoiseInput || one.Remembers(name) {
			// Noise decides what is drawn and not what is best: the buffer's zeros will do.
			continue
		}
		in := input{name: name, to: one.Input(name)}
		size, d := n, tensor.Float32
		switch name {
		case trading.WindowField:
			in.from, size = t.window, p.Window*n*len(p.Features)
		case trading.PositionField:
			in.from = portfolio.Position
		case trading.CashField:
			in.from, size = portfolio.Cash, 1
		case trading.AccountField:
			in.from, size = portfolio.Books, 2
		case trading.TradableField:
			in.from, d = portfolio.Tradable, tensor.Uint8
		case agents.MaskInput:
			in.from, size, d = portfolio.Mask, 3*n, tensor.Bool
		default:
			return nil, fmt.Errorf("the model takes %q, which bars and holdings do not give", name)
		}
		if in.to.DType() != d || in.to.Len() != size {
			return nil, fmt.Errorf("the input %q is %v, and bars give %d values of %v", name, in.to, size, d)
		}
		t.inputs = append(t.inputs, in)
	}
	if err := t.watchDrift(); err != nil {
		return nil, err
	}
	if rules.Actions == trading.Weights {
		t.weights = make([]float64, n+1)
		if t.action.DType() != tensor.Float32 || t.action.Len() != n+1 {
			return nil, fmt.Errorf("the output %q is %v, expected %d target weights", agents.ActionOutput, t.action, n+1)
		}
	} else if t.action.DType() != tensor.Int64 || t.action.Len() != n {
		return nil, fmt.Errorf("the output %q is %v, expected %d orders", agents.ActionOutput, t.action, n)
	}
	return t, nil
}

func (t *Trader) window() *tensor.Tensor {
	if t.scales {
		return t.Feed.Raw()
	}
	return t.Feed.Scaled()
}

// Append takes the bars of a time as the feed does, and executes at them what was decided before.
func (t *Trader) Append(at time.Time, rows []live.Row) error {
	if err := t.Feed.Append(at, rows); err != nil {
		return err
	}
	t.Portfolio.Update()
	return nil
}

// Decide runs the model on what it observes now and returns its orders, trading.Buy, Sell or Hold
// for each asset; they are valid until the next call. They are not executed unless they are given
// to the portfolio. The feed must be ready. It allocates nothing.
func (t *Trader) Decide() ([]int64, error) {
	if t.weights != nil {
		return nil, errors.New("decide: the agent's actions are target weights and no orders")
	}
	if err := t.run(); err != nil {
		return nil, err
	}
	return t.action.Int64s(), nil
}

// Weighs reports whether the agent's actions are target weights, which Weigh returns, and no
// orders.
func (t *Trader) Weighs() bool { return t.weights != nil }

// Weigh is Decide where actions are target weights [N+1], of the assets and, last, of the cash.
func (t *Trader) Weigh() ([]float64, error) {
	if t.weights == nil {
		return nil, errors.New("weigh: the agent's actions are orders and no target weights")
	}
	if err := t.run(); err != nil {
		return nil, err
	}
	for i, w := range t.action.Float32s() {
		t.weights[i] = float64(w)
	}
	return t.weights, nil
}

// run runs the model on what it observes now.
func (t *Trader) run() error {
	if !t.Feed.Ready() {
		return errors.New("decide: the feed has no whole window yet")
	}
	for i := range t.inputs {
		copy(t.inputs[i].to.Bytes(), t.inputs[i].from().Bytes())
	}
	if t.drift != nil {
		t.drift.Observe(t.seen, 1)
	}
	if err := t.one.Run(); err != nil {
		return err
	}
	t.one.Advance()
	return nil
}

// driftWindow is the number of decisions whose observations are compared with the published ones:
// about a year of daily bars.
const driftWindow = 256

// watchDrift has decisions counted where the model says what it was published on.
func (t *Trader) watchDrift() error {
	text, ok := t.one.Meta(drift.Key)
	if !ok {
		return nil
	}
	r, err := drift.Parse(text)
	if err != nil {
		return err
	}
	m := r.NewMonitor(driftWindow)
	for i := range m.Inputs() {
		k := slices.IndexFunc(t.inputs, func(in input) bool { return in.name == m.Input(i) })
		if k < 0 {
			return fmt.Errorf("metadata %s: the model has no input %q that bars and holdings give", drift.Key, m.Input(i))
		}
		to := t.inputs[k].to
		if err := m.Fits(i, to.Len(), to.DType()); err != nil {
			return err
		}
		t.seen = append(t.seen, to)
	}
	t.drift = m
	return nil
}

// Drift is how far the observations of the last decisions are from those that the policy was
// published on, and the name of the feature that has moved most; zero and empty where nothing is
// known. A new trader, and one that loads its memory, counts from 0.
func (t *Trader) Drift() (drift.Drift, string) {
	if t.drift == nil {
		return drift.Drift{}, ""
	}
	d := t.drift.Last()
	if d.Rows == 0 {
		return d, ""
	}
	return d, t.drift.Name(d.Feature)
}

// margin is the least margin of the last decision's choices, 1 where the model does not tell.
func (t *Trader) margin(heads []int) float64 {
	return publish.LeastMargin(t.one, heads)
}

// Remembers reports whether the model has states, so that its orders depend on all that it has
// seen.
func (t *Trader) Remembers() bool {
	return slices.ContainsFunc(t.one.Inputs(), t.one.Remembers)
}

// Close frees the model.
func (t *Trader) Close() error { return t.one.Close() }

// tradingConfig are the rules of the environment that a pipeline's configuration describes.
func tradingConfig(p live.Pipeline) (trading.Config, error) {
	c := trading.Params{Config: trading.Defaults()}
	doc, err := configs.Parse("config", []byte(p.Config))
	if err == nil {
		err = doc.Decode(&c)
	}
	c.Episode = trading.Episode{Kind: trading.Full, End: c.Episode.End}
	return c.Config, err
}

// WarmState is the state of a feed that a version was published with, from which serving may begin
// without a history, and the time of the bars that come next; nil where it has none.
func WarmState(v artifact.Version) (state []byte, next time.Time, err error) {
	f, err := openFile(v, BarsFile)
	if f == nil || err != nil {
		return nil, next, err
	}
	if state, err = array[uint8](f, "state", -1); err != nil {
		return nil, next, err
	}
	times, err := array[int64](f, "time", -1)
	if err != nil || len(times) == 0 {
		return nil, next, errors.Join(err, fmt.Errorf("%s: %d times", BarsFile, len(times)))
	}
	return state, time.UnixMicro(times[0]).UTC(), nil
}

// SaveMemory returns the states of a model that remembers, as after its last decision; nil of one
// that does not.
func (t *Trader) SaveMemory() []byte { return t.one.SaveMemory() }

// LoadMemory makes the model remember what it did when its memory was saved.
func (t *Trader) LoadMemory(memory []byte) error { return t.one.LoadMemory(memory) }
