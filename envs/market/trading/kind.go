package trading

import (
	"context"
	"fmt"
	"sync"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
)

// Data is a market and the bars of each split.
type Data struct {
	Market *Market
	Splits map[envs.Split]Range
	// TrainParts, where there are any, are the parts of the training split that is learnt from.
	TrainParts []Range
	// Scales [F] say how the features of Market.X were scaled, so that an exported agent can take
	// unscaled ones; nil when they are as they came.
	Scales []Scale
	// LookAhead says what of the market's features knows the future, one sentence each. Results
	// must then be marked.
	LookAhead []string
	// Config is the effective data section, defaults included, for the record of the run; nil keeps
	// the section as it was written.
	Config any
	// Digests identify what the data were made of, by name such as data_sha256, for the record of a
	// run.
	Digests map[string]string
	// Adjusted says what prices were multiplied by: none, adj_close, factor or actions; empty where it is
	// not known.
	Adjusted string
	// Notes are what whoever evaluates a result must know of the data, one sentence each; the first
	// says how prices are adjusted.
	Notes []string
	// Close, unless nil, frees the market's memory.
	Close func() error

	derived sync.Map // of *derivation by key
}

// derivation is a value that is made once.
type derivation struct {
	once  sync.Once
	value any
	err   error
}

// Derived returns what is made of the data under a key, which is made when it is first asked for
// and kept as long as the data are. It is safe for concurrent use, the value is shared.
func (d *Data) Derived(key any, make func() (any, error)) (any, error) {
	v, _ := d.derived.LoadOrStore(key, &derivation{})
	x := v.(*derivation)
	x.once.Do(func() { x.value, x.err = make() })
	return x.value, x.err
}

// Scale is the affine map of one feature, z = (x − Mean)/Std, limited to ±Clip where Clip is not 0.
// A feature that is not Scaled is passed on. A value that is not known (NaN) becomes 0 in any case.
type Scale struct {
	Mean, Std, Clip float64
	Scaled          bool
	// Unit is what x is measured in, in the words of the data; empty where it is not known.
	Unit string
}

// Loader turns the data section of a configuration into a market for windows of that many bars.
type Loader func(ctx context.Context, window int, data configs.Section) (*Data, error)

// Params is the configuration of the kind: the keys of Config, and data, which belongs to the
// loader.
type Params struct {
	Config `yaml:",inline"`
	Data   configs.Section `yaml:"data"`
}

// Kind returns the kind "trading", with data from load. Evaluation has no random episodes: for
// splits other than envs.Train, environments run through the whole range.
func Kind(load Loader) envs.Kind {
	return envs.Kind{Name: "trading", Summary: "buy, sell or hold several assets out of one pool of cash, or weigh them", Needs: "market data", Defaults: func() any { return Params{Config: Defaults()} }, Open: func(ctx context.Context, params configs.Section) (envs.Factory, error) {
		p := Params{Config: Defaults()}
		if err := params.Decode(&p); err != nil {
			return nil, err
		}
		d, err := load(ctx, p.Window, p.Data)
		if err != nil {
			return nil, fmt.Errorf("trading: load data: %w", err)
		}
		f := &factory{params: p, data: d}
		if d.Config != nil {
			if f.params.Data, err = configs.NewSection(d.Config); err != nil {
				return nil, fmt.Errorf("trading: the effective data section: %w", err)
			}
		}
		if f.source, err = NewSource(d.Market, p.Config); err != nil {
			return nil, err
		}
		whole := f.source.config
		whole.Episode.Kind, whole.Episode.Length = Full, 0
		f.whole = f.source.with(whole)
		return f, nil
	}}
}

// Opened is what a factory of the kind trading also offers to programs that evaluate and export.
type Opened interface {
	envs.Factory
	// Data returns the market, shared by all environments.
	Data() *Data
	// Source returns the source of whole-range environments.
	Source() *Source
}

var (
	_ Opened             = (*factory)(nil)
	_ envs.SharesFactory = (*factory)(nil)
)

type factory struct {
	params        Params
	data          *Data
	source, whole *Source
}

func (f *factory) Config() any { return f.params }

// Data implements Opened.
func (f *factory) Data() *Data { return f.data }

// Source implements Opened.
func (f *factory) Source() *Source { return f.whole }

// Shares implements [envs.SharesFactory].
func (f *factory) Shares() func(shares []float64, action []float32, scratch []float64) {
	if c := f.whole.Config(); c.Actions == Weights {
		return c.Weights.Of
	}
	return nil
}

func (f *factory) New(split envs.Split, _ int) (envs.Env, error) {
	r, ok := f.data.Splits[split]
	if !ok {
		return nil, fmt.Errorf("trading: the data have no split %q", split)
	}
	s := f.whole
	if split == envs.Train {
		s = f.source
		if parts := f.data.TrainParts; parts != nil {
			return s.Parts(parts)
		}
	}
	return s.Env(r)
}

func (f *factory) Close() error {
	if f.data.Close == nil {
		return nil
	}
	return f.data.Close()
}
