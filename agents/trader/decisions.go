package trader

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/safetensors"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// decisions are what an agent observed and decided at the last of golden bars, D in number,
// beginning with an account all in cash.
type decisions struct {
	position, cash []float32 // [D,N] and [D]
	mask           []bool    // [D,3N]
	action         []int64   // [D,N]; nil where actions are target weights
	weights        []float32 // [D,N+1] these; nil where actions are orders
	// margin is the least margin of a decision's choices, 1 where the agent does not tell.
	margin []float32
}

// replay leads golden bars through a feed, a portfolio and an agent. With recorded decisions given,
// the orders are those, whatever the agent decides, so that one difference does not make others.
// feature receives the unscaled features of every bar.
func replay(t *goldenBars, p live.Pipeline, c trading.Config, one *served.Policy, heads []int, recorded *decisions, feature func(bar int, row []float32)) (*decisions, error) {
	trader, err := newTrader(p, c, one)
	if err != nil {
		return nil, err
	}
	if err := trader.Feed.LoadState(t.state); err != nil {
		return nil, err
	}
	portfolio := trader.Portfolio
	d, rows := &decisions{}, make([]live.Row, t.assets)
	for i := range t.times {
		if err := trader.Append(t.row(i, rows), rows); err != nil {
			return nil, err
		}
		feature(i, trader.Feed.RawRow())
		if !trader.Feed.Ready() {
			continue
		}
		var orders []int64
		var weights []float64
		if trader.Weighs() {
			weights, err = trader.Weigh()
		} else {
			orders, err = trader.Decide()
		}
		if err != nil {
			return nil, err
		}
		k := len(d.margin)
		for _, w := range weights {
			d.weights = append(d.weights, float32(w))
		}
		d.position, d.cash = append(d.position, portfolio.Position().Float32s()...), append(d.cash, portfolio.Cash().Float32s()[0])
		d.mask, d.action, d.margin = append(d.mask, portfolio.Mask().Bools()...), append(d.action, orders...), append(d.margin, float32(trader.margin(heads)))
		if recorded != nil {
			if k >= len(recorded.margin) {
				return nil, fmt.Errorf("%w: %d decisions are recorded, and bar %d leads to another", artifact.ErrGolden, k, i)
			}
			if orders != nil {
				orders = recorded.action[k*t.assets : (k+1)*t.assets]
			}
			for i := range weights {
				weights[i] = float64(recorded.weights[k*len(weights)+i])
			}
		}
		if trader.Weighs() {
			err = portfolio.Rebalance(weights)
		} else {
			err = portfolio.Decide(orders)
		}
		if err != nil {
			return nil, err
		}
	}
	return d, nil
}

// fromBars says whether bars and holdings are all that a policy takes.
func fromBars(one *served.Policy) bool {
	for _, name := range one.Inputs() {
		switch name {
		case trading.WindowField, trading.PositionField, trading.CashField, trading.AccountField, trading.TradableField, agents.MaskInput:
		default:
			if !one.Remembers(name) {
				return false
			}
		}
	}
	return true
}

// files returns the files of golden bars for a policy, none where the market's data do not tell or
// the policy takes more than bars give. The market keeps what does not depend on the policy.
func (m *market) files(one *served.Policy, heads []int) ([]artifact.NewFile, error) {
	files, err := m.replayed(one, heads)
	if err != nil {
		return nil, fmt.Errorf("golden bars: %w", err)
	}
	return files, nil
}

func (m *market) replayed(one *served.Policy, heads []int) ([]artifact.NewFile, error) {
	if m.history == nil || !fromBars(one) {
		return nil, nil
	}
	p, err := live.ParsePipeline(m.pipeline)
	if err != nil {
		return nil, err
	}
	if m.golden == nil {
		d := m.Data()
		r, ok := d.Splits[envs.Valid]
		if !ok {
			r = d.Splits[envs.Train]
		}
		if m.golden, err = newGoldenBars(p, m.history, r); m.golden == nil || err != nil {
			return nil, err
		}
	}
	d, err := replay(m.golden, p, m.Source().Config(), one, heads, nil, func(int, []float32) {})
	if err != nil {
		return nil, err
	}
	text, err := d.encode(m.golden.assets)
	return []artifact.NewFile{{Title: BarsFile, MediaType: BarsType, Data: m.golden.file}, {Title: DecisionsFile, MediaType: DecisionsType, Data: text}}, err
}

func (d *decisions) encode(assets int) ([]byte, error) {
	n := len(d.margin)
	var out bytes.Buffer
	action := safetensors.New(agents.ActionOutput, []int{n, assets}, d.action)
	if d.weights != nil {
		action = safetensors.New(agents.ActionOutput, []int{n, assets + 1}, d.weights)
	}
	err := safetensors.Write(&out, map[string]string{"format": "onnxrl golden decisions", "version": "1"}, []safetensors.Tensor{
		action, safetensors.New(trading.PositionField, []int{n, assets}, d.position), safetensors.New(trading.CashField, []int{n, 1}, d.cash),
		safetensors.New("margin", []int{n}, d.margin), safetensors.New(agents.MaskInput, []int{n, 3 * assets}, d.mask),
	})
	return out.Bytes(), err
}

func readDecisions(v artifact.Version, assets int, weighs bool) (*decisions, error) {
	f, err := openFile(v, DecisionsFile)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fmt.Errorf("there is no %s", DecisionsFile)
	}
	d := &decisions{}
	if d.margin, err = array[float32](f, "margin", -1); err != nil {
		return nil, err
	}
	n := len(d.margin)
	if weighs {
		d.weights, err = array[float32](f, agents.ActionOutput, n, assets+1)
	} else {
		d.action, err = array[int64](f, agents.ActionOutput, n, assets)
	}
	if err != nil {
		return nil, err
	}
	if d.position, err = array[float32](f, trading.PositionField, n, assets); err != nil {
		return nil, err
	}
	if d.cash, err = array[float32](f, trading.CashField, n, 1); err != nil {
		return nil, err
	}
	d.mask, err = array[bool](f, agents.MaskInput, n, 3*assets)
	return d, err
}

// BarsReport says what golden bars were compared with.
type BarsReport struct {
	// Bars is the number of times, Features that of values computed from them, and Decisions that
	// of the agent's; all 0 where a version has no golden bars.
	Bars, Features, Decisions int
	// Close decisions are made by a margin that rounding may decide; their actions are not
	// compared.
	Close int
	// MaxError is the largest |Δ| / (1 + |x|) of features and holdings; 0 on processors that round
	// alike.
	MaxError float64
}

// featureTolerance is the largest |Δ| / (1 + |x|) that is taken for the rounding of another
// processor.
const featureTolerance = 1e-5

// VerifyBars leads the golden bars of a market agent from bars to features to actions again, and
// compares both with what is recorded. The error is an artifact.ErrGolden where they differ. A
// version without golden bars has nothing to compare.
func VerifyBars(ctx context.Context, v artifact.Version, c engine.Compiler) (r BarsReport, err error) {
	if r, err = verifyBars(ctx, v, c); err != nil {
		return r, fmt.Errorf("golden bars of %v: %w", v, err)
	}
	return r, nil
}

func verifyBars(ctx context.Context, v artifact.Version, c engine.Compiler) (r BarsReport, err error) {
	if f, err := openFile(v, BarsFile); f == nil || err != nil {
		return r, err
	}
	p, err := live.ParsePipeline(v.Manifest.Features)
	if err != nil {
		return r, err
	}
	t, err := readGoldenBars(v, p)
	if err != nil {
		return r, err
	}
	rules, err := tradingConfig(p)
	if err != nil {
		return r, err
	}
	want, err := readDecisions(v, t.assets, rules.Actions == trading.Weights)
	if err != nil {
		return r, err
	}
	m, err := v.Model()
	if err != nil {
		return r, err
	}
	choices, err := publish.Choices(m)
	if err != nil {
		return r, err
	}
	var heads []int
	if len(choices) > 0 {
		heads = choices[0].Heads
	}
	one, err := served.New(ctx, m, c, 1)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, one.Close()) }()
	if n := len(t.times) - p.Window + 1; n != len(want.margin) {
		return r, fmt.Errorf("%w: %d decisions are recorded for %d bars and windows of %d", artifact.ErrGolden, len(want.margin), len(t.times), p.Window)
	}
	var differs error
	compare := func(what string, got, want []float32) {
		for i, x := range got {
			e := math.Abs(float64(x)-float64(want[i])) / (1 + math.Abs(float64(want[i])))
			if x != x && want[i] != want[i] || x == want[i] {
				e = 0
			}
			if r.MaxError = max(r.MaxError, e); !(e <= featureTolerance) && differs == nil {
				differs = fmt.Errorf("%w: value %d of %s is %v, expected %v", artifact.ErrGolden, i, what, x, want[i])
			}
		}
	}
	got, err := replay(t, p, rules, one, heads, want, func(bar int, row []float32) {
		compare(fmt.Sprintf("the features of bar %d", bar), row, t.features[bar*len(row):])
		r.Bars, r.Features = r.Bars+1, r.Features+len(row)
	})
	if err != nil {
		return r, err
	}
	if differs == nil && len(got.margin) != len(want.margin) {
		differs = fmt.Errorf("%w: %d decisions instead of %d", artifact.ErrGolden, len(got.margin), len(want.margin))
	}
	if differs != nil {
		return r, differs
	}
	for k := range want.margin {
		r.Decisions++
		if float64(want.margin[k]) <= bake.Margin {
			r.Close++
			continue
		}
		if want.action == nil {
			continue
		}
		for i := k * t.assets; i < (k+1)*t.assets; i++ {
			if got.action[i] != want.action[i] && differs == nil {
				differs = fmt.Errorf("%w: decision %d for %s is %d, expected %d", artifact.ErrGolden, k, p.Assets[i%t.assets], got.action[i], want.action[i])
			}
		}
	}
	compare("the target weights", got.weights, want.weights)
	compare("the positions", got.position, want.position)
	compare("the cash", got.cash, want.cash)
	for i := range want.mask {
		if got.mask[i] != want.mask[i] && differs == nil {
			differs = fmt.Errorf("%w: element %d of the masks is %v", artifact.ErrGolden, i, got.mask[i])
		}
	}
	return r, differs
}
