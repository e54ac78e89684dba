package feed

import (
	"context"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// params is the configuration of Kind.
type params struct {
	trading.Config `yaml:",inline"`
	// Data says what market the environments trade in.
	Data prepared.Config `yaml:"data"`
}

// Validate reports keys that the rule book of the data contradicts.
func (p params) Validate() error {
	if p.Data.Rules == "" {
		return nil
	}
	return p.CheckRules(p.Data.Rules)
}

// Kind returns the kind "trading" over markets that Load makes.
func Kind() envs.Kind {
	k := trading.Kind(Load)
	k.Defaults = func() any {
		p := params{Config: trading.Defaults(), Data: prepared.Default()}
		p.Data.Window = 0 // the environment's
		return p
	}
	return k
}

// Load is a trading.Loader: it reads and prepares the data that a section of the form of
// prepared.Config describes. The window is the environment's.
func Load(ctx context.Context, window int, data configs.Section) (*trading.Data, error) {
	c := prepared.Default()
	c.Window = window
	if err := data.Decode(&c); err != nil {
		return nil, err
	}
	if c.Window == 0 {
		c.Window = window
	}
	if c.Window != window {
		return nil, data.Errorf("window", "the environment's window is %d: leave this key out", window)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if c.Stored != "" {
		if err := configs.Validate(c); err != nil {
			return nil, err
		}
		return OpenColumns(c.Stored)
	}
	set, notes, err := prepared.Make(ctx, c)
	if err != nil {
		return nil, err
	}
	d := FromSet(set)
	d.Notes = append(d.Notes, notes...)
	// The window stays the environment's: a document that is edited and run again has it in one
	// place.
	c.Window = 0
	d.Config = c
	return d, nil
}
