package publish

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/feature"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// market is what an environment's observations are before they are scaled, and what they mean. The
// zero market is that of an environment that shows raw observations.
type market struct {
	scalings []bake.Affine
	// tables have the unscaled rows of windows, by field.
	tables map[string]*tensor.Tensor
	// info describes assets, features and actions, for metadata; pipeline is the same with the
	// statistics, as JSON.
	info     map[string]string
	pipeline json.RawMessage
	// ports describes inputs and outputs by name.
	ports map[string]string
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

// newMarket describes the environments of a factory.
func newMarket(f envs.Factory) (market, error) {
	o, ok := wrap.FindFactory[trading.Opened](f)
	if !ok {
		return market{}, nil
	}
	d, c := o.Data(), o.Source().Config()
	if c.Slots > 0 {
		// Which asset a slot stands for is known in the environment only: whoever uses the agent
		// makes its observations.
		return market{}, nil
	}
	actions := actions
	if c.Actions == trading.Weights {
		actions = []string{"weight"}
	}
	m := market{info: map[string]string{
		"assets": strings.Join(d.Market.Assets, ","), "features": strings.Join(d.Market.Features, ","), "actions": strings.Join(actions, ","),
	}}
	text, err := configs.Marshal(f.Config())
	if err != nil {
		return m, err
	}
	h, err := historyOf(d)
	if err != nil {
		return m, err
	}
	var unscaled *tensor.Tensor
	if h != nil {
		m.history, unscaled = h.History, h.unscaled
	}
	p := pipeline{Pipeline: live.Pipeline{Version: live.Version, Window: c.Window, Assets: d.Market.Assets, Adjusted: d.Adjusted, Config: string(text)}, Actions: actions}
	if m.history != nil {
		p.Anchors = m.history.Anchors
		p.Extra, p.Warmup = m.history.Panel.Extra, m.history.Features.Warmup()
		p.Quotes = live.QuotesFor(c, m.history.Panel.Quoted, d.Adjusted)
	}
	units := make([]string, len(d.Market.Features))
	for i, name := range d.Market.Features {
		s := trading.Scale{Std: 1}
		if d.Scales != nil {
			s = d.Scales[i]
		}
		units[i] = s.Unit
		p.Features = append(p.Features, live.Feature{Name: name, Unit: s.Unit, Mean: s.Mean, Std: s.Std, Clip: s.Clip, Scaled: s.Scaled})
		if m.history != nil {
			p.Features[i].Warmup = m.history.Features.Columns()[i].Warmup
		}
	}
	m.info["units"] = strings.Join(units, ",")
	if m.pipeline, err = json.Marshal(p); err != nil {
		return m, err
	}
	scaled := "features of the last bars, oldest first, as the pipeline gives them"
	if d.Scales != nil {
		scaled = "features of the last bars, oldest first, unscaled; NaN where they are not known"
		a := scaling(d)
		if unscaled == nil {
			if unscaled, err = a.Unscale(tensor.Of(d.Market.X, d.Market.Len(), len(d.Market.Assets), len(d.Market.Features))); err != nil {
				return m, err
			}
		}
		m.scalings, m.tables = []bake.Affine{a}, map[string]*tensor.Tensor{trading.WindowField: unscaled}
	}
	position, cash := "value of each asset as a share of the portfolio's", "cash as a share of the portfolio's value"
	if c.State.Scale == trading.Raw {
		position, cash = "number of shares of each asset", "cash in the market's currency"
	}
	m.ports = map[string]string{trading.WindowField: scaled, trading.PositionField: position, trading.CashField: cash}
	if c.State.IncludeAccount {
		m.ports[trading.AccountField] = "value of the portfolio as a multiple of the cash that it began with, and the number of the day since 1970"
	}
	if c.Actions == trading.Weights {
		m.ports[trading.TradableField] = "1 where an asset can be bought or sold at present"
		m.ports[agents.ActionOutput] = "target weights of the assets and, last, of the cash; 1 in sum"
	}
	return m, nil
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

// ArtefactName makes a name that artefacts may have of any text.
func ArtefactName(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') })
	if name := strings.Join(words, "-"); artifact.CheckName(name) == nil {
		return name
	}
	return "agent"
}

// check reports statistics that do not belong to the market.
func check(d *trading.Data) error {
	if d.Scales != nil && len(d.Scales) != len(d.Market.Features) {
		return fmt.Errorf("%d scales for %d features", len(d.Scales), len(d.Market.Features))
	}
	return nil
}
