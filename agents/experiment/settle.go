package experiment

import (
	"context"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/encoder"
)

// Settle returns the document with a value for everything that it leaves open: what this program
// takes there. Documents of which one was written before a key existed can be compared so. It opens
// the environment, and closes it again.
func (k Kinds) Settle(ctx context.Context, c Config) (Config, error) {
	c, factory, _, err := k.Open(ctx, c)
	if err != nil {
		return c, err
	}
	if err := factory.Close(); err != nil {
		return c, err
	}
	text, err := configs.Marshal(c)
	if err != nil {
		return c, err
	}
	doc, err := configs.Parse("the effective configuration", text)
	if err != nil {
		return c, err
	}
	for _, key := range []string{"agent.encoder", "agent.policy"} {
		if err := k.settleEncoder(doc, key); err != nil {
			return c, err
		}
	}
	c = Defaults()
	if err := doc.Decode(&c); err != nil {
		return c, err
	}
	return k.Complete(c, nil), nil
}

// settleEncoder completes the encoder at a key of a document, if there is one.
func (k Kinds) settleEncoder(doc *configs.Document, key string) error {
	section, ok := doc.Lookup(key)
	if !ok {
		return nil
	}
	var named configs.Kinded
	if err := section.Decode(&named); err != nil || named.Kind == "" {
		return err
	}
	e, err := encoder.New(k.Encoders, named)
	if err != nil {
		return err
	}
	if named, err = configs.NewKinded(named.Kind, e.Config()); err != nil {
		return err
	}
	return doc.SetValue(key, named)
}
