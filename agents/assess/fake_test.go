package assess

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// market returns a random walk with one feature that tells how each asset moves over the next bar:
// a policy that follows it is better than one that does not.
func market(seed uint64, bars, assets int) *trading.Market {
	s := rng.New(seed).Split("market").Stream()
	m := &trading.Market{Features: []string{"oracle"}, X: make([]float32, bars*assets), Open: make([]float64, bars*assets), Close: make([]float64, bars*assets), Tradable: make([]trading.Sides, bars*assets)}
	price := make([]float64, assets)
	for i := range assets {
		m.Assets = append(m.Assets, string(rune('A'+i)))
		price[i] = 50
	}
	for b := range bars {
		m.Dates = append(m.Dates, time.Date(2010, 1, 1+b, 0, 0, 0, 0, time.UTC))
		for a := range assets {
			i := b*assets + a
			m.Open[i], m.Tradable[i] = price[a]*math.Exp(0.001*s.Normal()), trading.Both
			up := s.Bernoulli(0.5)
			if b > 0 {
				m.X[i-assets] = -1
				if up {
					m.X[i-assets] = 1
				}
			}
			if up {
				price[a] = m.Open[i] * 1.01
			} else {
				price[a] = m.Open[i] / 1.01
			}
			m.Close[i] = price[a]
		}
	}
	return m
}

// factory opens the kind trading over a market whose splits are thirds.
func factory(t *testing.T, m *trading.Market, yaml string) trading.Opened {
	t.Helper()
	k := trading.Kind(func(context.Context, int, configs.Section) (*trading.Data, error) {
		n := m.Len()
		return &trading.Data{Market: m, Splits: map[envs.Split]trading.Range{
			envs.Train: {First: 0, Last: n/3 - 1}, envs.Valid: {First: n / 3, Last: 2*n/3 - 1}, envs.Test: {First: 2 * n / 3, Last: n - 1},
		}}, nil
	})
	doc, err := configs.Parse("env.yaml", []byte("env:\n  kind: trading\n  data: {}\n  window: 3\n"+yaml))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Env configs.Kinded `yaml:"env"`
	}
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	f, err := envs.Open(t.Context(), []envs.Kind{k}, c.Env)
	if err != nil {
		t.Fatal(err)
	}
	return f.(trading.Opened)
}

// follower is an agent whose actors buy what the last row of the window calls good and sell what it
// calls bad; a contrarian does the opposite.
type follower struct {
	market     *trading.Market
	contrarian bool
	opened     *int
}

func (f follower) NewActor(_ agents.Mode, n int) (agents.Actor, error) {
	*f.opened++
	return &following{follower: f, d: vector.Decision{Actions: tensor.New(tensor.Int64, n, len(f.market.Assets))}}, nil
}
func (follower) Recorder() agents.Recorder { return nil }
func (follower) Learner() agents.Learner   { return learner{} }
func (follower) Close() error              { return nil }

type learner struct{ agents.Learner }

func (learner) Policy() (*models.Network, *models.Params) { return nil, nil }

type following struct {
	follower
	d vector.Decision
}

func (a *following) Act(_ context.Context, _ rng.Key, b *vector.Batch) (*vector.Decision, error) {
	n := len(a.market.Assets)
	for r, bar := range b.Rows[0] {
		for i := range n {
			buy := a.market.X[int(bar)*n+i] > 0
			a.d.Actions.Int64s()[r*n+i] = trading.Sell
			if buy != a.contrarian {
				a.d.Actions.Int64s()[r*n+i] = trading.Buy
			}
		}
	}
	return &a.d, nil
}
func (*following) Remembers() bool            { return false }
func (*following) Sync(context.Context) error { return nil }
func (a *following) Close() error             { *a.opened--; return nil }
