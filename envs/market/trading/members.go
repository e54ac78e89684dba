package trading

import "github.com/onnxrl/onnxrl/envs/market/universe"

// exit is the order that no agent gives: to sell all, whether or not the asset could be traded when
// it was decided on.
const exit = actions

// Enrol sets the members [T,N] of the universe and closes the purchases of all others. Tradable and
// AtOpen are changed.
func (m *Market) Enrol(members []universe.Membership) {
	m.Members = members
	for i, v := range members {
		if v == universe.Member {
			continue
		}
		m.Tradable[i] &^= CanBuy
		if m.AtOpen != nil {
			m.AtOpen[i] &^= CanBuy
		}
	}
}

// Member reports whether an asset belongs to the universe at a bar.
func (m *Market) Member(bar, asset int) bool {
	return m.Members == nil || m.Members[bar*len(m.Assets)+asset] == universe.Member
}

// Leaves reports whether what is held of an asset at a bar is to be sold.
func (m *Market) Leaves(bar, asset int) bool {
	return m.Members != nil && m.Members[bar*len(m.Assets)+asset] == universe.Leaving
}

// exits returns the orders with those for what has left the universe replaced.
func (a *Account) exits(orders []int64, members []universe.Membership) []int64 {
	if members == nil {
		return orders
	}
	if a.orders == nil {
		a.orders = make([]int64, len(a.pos))
	}
	copy(a.orders, orders)
	for i, m := range members {
		if m == universe.Leaving && a.pos[i] > 0 {
			a.orders[i] = exit
		}
	}
	return a.orders
}

// exitWeights gives the cash the weights [N+1] of what has left the universe.
func exitWeights(weights []float64, members []universe.Membership) {
	for i, m := range members {
		if m == universe.Leaving {
			weights[len(members)] += weights[i]
			weights[i] = 0
		}
	}
}

// maskExits leaves selling alone of what has left the universe and can be sold; the order is given
// in any case.
func (a *Account) maskExits(mask []bool, members []universe.Membership) {
	for i, m := range members {
		if of := mask[i*actions : (i+1)*actions]; m == universe.Leaving && a.pos[i] > 0 && of[Sell] {
			of[Hold] = false
		}
	}
}
