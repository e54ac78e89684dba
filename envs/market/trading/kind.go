package trading

import (
	"context"
	"fmt"

	"onnxrl/configs"
	"onnxrl/envs"
)

// Data is a market and the bars of each split.
type Data struct {
	Market *Market
	Splits map[envs.Split]Range
	// Close, unless nil, frees the market's memory.
	Close func() error
}

// Loader turns the data section of a configuration into a market.
type Loader func(ctx context.Context, data configs.Section) (*Data, error)

// Params is the configuration of the kind: the keys of Config, and data, which belongs to the loader.
type Params struct {
	Config `yaml:",inline"`
	Data   configs.Section `yaml:"data"`
}

// Kind returns the kind "trading", with data from load. Evaluation has no random episodes: for splits other than envs.Train, environments run through the whole range.
func Kind(load Loader) envs.Kind {
	return envs.Kind{Name: "trading", Open: func(ctx context.Context, params configs.Section) (envs.Factory, error) {
		p := Params{Config: Defaults()}
		if err := params.Decode(&p); err != nil {
			return nil, err
		}
		d, err := load(ctx, p.Data)
		if err != nil {
			return nil, fmt.Errorf("trading: load data: %w", err)
		}
		f := &factory{params: p, data: d}
		if f.source, err = NewSource(d.Market, p.Config); err != nil {
			return nil, err
		}
		whole := p.Config
		whole.Episode.Kind, whole.Episode.Length = Full, 0
		f.whole = f.source.with(whole)
		return f, nil
	}}
}

type factory struct {
	params        Params
	data          *Data
	source, whole *Source
}

func (f *factory) Config() any { return f.params }

func (f *factory) New(split envs.Split, _ int) (envs.Env, error) {
	r, ok := f.data.Splits[split]
	if !ok {
		return nil, fmt.Errorf("trading: the data have no split %q", split)
	}
	s := f.whole
	if split == envs.Train {
		s = f.source
	}
	return s.Env(r)
}

func (f *factory) Close() error {
	if f.data.Close == nil {
		return nil
	}
	return f.data.Close()
}
