package app

import (
	"slices"

	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/universe"
)

// The row of an environment with slots.
const (
	crowdAssets, crowdSlots, crowdFeatures = 800, 300, 8
)

func slotsOf(n int) trading.Config {
	c := trading.Defaults()
	c.Slots = n
	return c
}

// crowd returns a random market of which a part belongs to the universe: a run of the assets that
// moves on by one each bar.
func (b envBench) crowd() *trading.Market {
	b.assets, b.features, b.bars = crowdAssets, crowdFeatures, 600
	m, n := b.market(), b.assets
	members := make([]universe.Membership, b.bars*n)
	for i := range members {
		if members[i] = universe.Leaving; (i%n-i/n%n+n)%n < crowdSlots {
			members[i] = universe.Member
		}
	}
	m.Tradable = slices.Clone(m.Tradable)
	m.Enrol(members)
	return m
}
