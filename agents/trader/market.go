package trader

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/feature"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Kind returns the kind "trading" of package feed, whose factories are a [publish.Domain].
func Kind() envs.Kind {
	k := feed.Kind()
	open := k.Open
	k.Open = func(ctx context.Context, params configs.Section) (envs.Factory, error) {
		f, err := open(ctx, params)
		if err != nil {
			return nil, err
		}
		return &factory{f.(opened)}, nil
	}
	return k
}

// opened is what the factory of package trading has.
type opened interface {
	trading.Opened
	envs.SharesFactory
}

// factory is the factory of package trading, which also says what is published of its policies.
type factory struct{ opened }

var _ publish.Domain = (*factory)(nil)

// market is a factory's market as its publications have it.
type market struct {
	trading.Opened
	// pipeline is how bars become the model's inputs, as JSON.
	pipeline json.RawMessage
	// history is what the market was prepared from, nil where the data do not tell.
	history *prepared.History
	// golden are made when first wanted.
	golden *goldenBars
}

// pipeline is how bars become the model's inputs; the JSON keys are stable. Package live makes
// features of it, where the data are those of package prepared.
type pipeline struct {
	live.Pipeline
	Actions []string `json:"actions"`
}

// actions names what a head of the trading environment chooses, in order; target weights are no
// choice, and their one name is weight.
var actions = []string{trading.Buy: "buy", trading.Sell: "sell", trading.Hold: "hold"}

// WithAccount implements [publish.Domain].
func (f *factory) WithAccount() any {
	c := f.Config().(trading.Params)
	c.State.IncludeAccount = true
	return c
}

// Meaning implements [publish.Domain].
func (f *factory) Meaning() (m publish.Meaning, err error) {
	d, c := f.Data(), f.Source().Config()
	if d.Scales != nil && len(d.Scales) != len(d.Market.Features) {
		return m, fmt.Errorf("%d scales for %d features", len(d.Scales), len(d.Market.Features))
	}
	m.Past = publish.Past{Trained: PeriodOf(f, envs.Train), Chosen: PeriodOf(f, envs.Valid), LookAhead: d.LookAhead}
	m.Account = &publish.Account{
		Field: trading.AccountField, Write: trading.WriteAccount, Buy: trading.Buy, Least: trading.LeastKept, Restrict: trading.RestrictWeights,
		Exposure: c.Risk.MaxExposure, Weight: c.Risk.MaxWeight, Cuts: c.Risk.CVaR.Limit > 0,
	}
	if of := f.Shares(); of != nil {
		var scratch []float64
		m.Simplex = &bake.Simplex{Output: agents.ActionOutput, Project: c.Weights.Simplex == trading.Projection, Of: func(weights []float64, row []float32) {
			if scratch == nil {
				scratch = make([]float64, len(row))
			}
			of(weights, row, scratch)
		}}
		m.Action = c.Weights.Action
	}
	if c.Slots > 0 {
		// Which asset a slot stands for is known in the environment only: whoever uses the agent
		// makes its observations.
		return m, nil
	}
	return m, f.describe(&m)
}

// describe says what observations are before they are scaled, and what they and actions mean.
func (f *factory) describe(m *publish.Meaning) error {
	d, c := f.Data(), f.Source().Config()
	actions := actions
	if c.Actions == trading.Weights {
		actions = []string{"weight"}
	}
	m.Info = map[string]string{
		"assets": strings.Join(d.Market.Assets, ","), "features": strings.Join(d.Market.Features, ","), "actions": strings.Join(actions, ","),
	}
	text, err := configs.Marshal(f.Config())
	if err != nil {
		return err
	}
	h, err := historyOf(d)
	if err != nil {
		return err
	}
	own := &market{Opened: f}
	var unscaled *tensor.Tensor
	if h != nil {
		own.history, unscaled = h.History, h.unscaled
	}
	p := pipeline{Pipeline: live.Pipeline{Version: live.Version, Window: c.Window, Assets: d.Market.Assets, Adjusted: d.Adjusted, Config: string(text)}, Actions: actions}
	if own.history != nil {
		p.Anchors = own.history.Anchors
		p.Extra, p.Warmup = own.history.Panel.Extra, own.history.Features.Warmup()
		p.Quotes = live.QuotesFor(c, own.history.Panel.Quoted, d.Adjusted)
	}
	units := make([]string, len(d.Market.Features))
	for i, name := range d.Market.Features {
		s := trading.Scale{Std: 1}
		if d.Scales != nil {
			s = d.Scales[i]
		}
		units[i] = s.Unit
		p.Features = append(p.Features, live.Feature{Name: name, Unit: s.Unit, Mean: s.Mean, Std: s.Std, Clip: s.Clip, Scaled: s.Scaled})
		if own.history != nil {
			p.Features[i].Warmup = own.history.Features.Columns()[i].Warmup
		}
	}
	m.Info["units"] = strings.Join(units, ",")
	if own.pipeline, err = json.Marshal(p); err != nil {
		return err
	}
	m.Pipeline, m.Files = own.pipeline, own.files
	scaled := "features of the last bars, oldest first, as the pipeline gives them"
	if d.Scales != nil {
		scaled = "features of the last bars, oldest first, unscaled; NaN where they are not known"
		a := scaling(d)
		if unscaled == nil {
			if unscaled, err = a.Unscale(tensor.Of(d.Market.X, d.Market.Len(), len(d.Market.Assets), len(d.Market.Features))); err != nil {
				return err
			}
		}
		m.Scalings, m.Tables = []bake.Affine{a}, map[string]*tensor.Tensor{trading.WindowField: unscaled}
	}
	position, cash := "value of each asset as a share of the portfolio's", "cash as a share of the portfolio's value"
	if c.State.Scale == trading.Raw {
		position, cash = "number of shares of each asset", "cash in the market's currency"
	}
	m.Ports = map[string]string{trading.WindowField: scaled, trading.PositionField: position, trading.CashField: cash}
	if c.State.IncludeAccount {
		m.Ports[trading.AccountField] = "value of the portfolio as a multiple of the cash that it began with, and the number of the day since 1970"
	}
	if c.Actions == trading.Weights {
		m.Ports[trading.TradableField] = "1 where an asset can be bought or sold at present"
		m.Ports[agents.ActionOutput] = "target weights of the assets and, last, of the cash; 1 in sum"
	}
	return nil
}

// scaling is that of the window. Features that are not scaled are passed on, and the listed flag is
// known even where others are not.
func scaling(d *trading.Data) bake.Affine {
	n := len(d.Scales)
	a := bake.Affine{Input: trading.WindowField, Mean: make([]float64, n), Std: make([]float64, n), Clip: make([]float64, n), Keep: make([]bool, n)}
	for i, s := range d.Scales {
		a.Std[i] = 1
		if s.Scaled {
			a.Mean[i], a.Std[i], a.Clip[i] = s.Mean, s.Std, s.Clip
		}
		a.Keep[i] = !s.Scaled && d.Market.Features[i] == feature.Listed
	}
	return a
}

// PeriodOf returns the bars of a split of the environment's data; none where there is no such
// split.
func PeriodOf(o trading.Opened, name envs.Split) evaluate.Period {
	bars, ok := o.Data().Splits[name]
	if !ok {
		return evaluate.Period{}
	}
	return evaluate.Period{First: o.Data().Market.Dates[bars.First], Last: o.Data().Market.Dates[bars.Last]}
}
