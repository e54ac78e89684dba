package livetrade

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents/trader"
)

// Swap is how a service goes over to another version of its policy. It decides beside the one that
// trades first; signals then say in how much it differs.
type Swap struct {
	// Every is how often the reference of the policy is looked up; 0 is never.
	Every time.Duration `yaml:"every,omitzero"`
	// Shadow is the number of decisions beside, after which the new version trades.
	Shadow int `yaml:"shadow,omitzero"`
}

// shadow is a version that decides beside.
type shadow struct {
	digest string
	trader *trader.Trader
	left   int // decisions until it trades
	// decided counts decisions, and same those that were those of the one that trades.
	decided, same int
	orders        []int64
	weights       []float64
}

// policy takes a command that names a version. The first of a journal says which one trades from
// the beginning.
func (m *Machine) policy(digest string) error {
	if m.seq == 0 && !m.chosen {
		m.chosen = true
		if digest == m.version {
			return nil
		}
		t, err := m.open(digest)
		if err != nil {
			return err
		}
		m.become(t, digest)
		return nil
	}
	m.chosen = true
	if m.shadow != nil {
		if digest == m.shadow.digest {
			return nil
		}
		err := m.shadow.trader.Close()
		if m.shadow = nil; err != nil {
			return err
		}
	}
	if digest == m.version {
		return nil // The alias has come back.
	}
	return m.cast(digest, m.swap.Shadow)
}

// open opens a version beside the one that trades.
func (m *Machine) open(digest string) (*trader.Trader, error) {
	if m.Open == nil {
		return nil, fmt.Errorf("policy %s: this program cannot open it", digest)
	}
	t, err := m.Open(m.trader, digest)
	if err != nil {
		return nil, fmt.Errorf("policy %s: %w", digest, err)
	}
	if t.Weighs() != m.trader.Weighs() {
		return nil, errors.Join(fmt.Errorf("policy %s: its actions are of another kind than those of the policy that trades", digest), t.Close())
	}
	return t, nil
}

// cast begins to decide beside with a version.
func (m *Machine) cast(digest string, left int) error {
	t, err := m.open(digest)
	if err != nil {
		return err
	}
	m.shadow = &shadow{digest: digest, trader: t, left: left}
	if left == 0 {
		m.takeOver()
	}
	return nil
}

// become trades with another version from now on.
func (m *Machine) become(t *trader.Trader, digest string) {
	if m.own != nil {
		// Of what has decided last nothing is left to be written.
		_ = m.own.Close()
	}
	m.monitor.forgetExperts(&m.events)
	m.trader, m.own, m.version = t, t, digest
}

// takeOver lets the version that decides beside trade.
func (m *Machine) takeOver() {
	s := m.shadow
	m.shadow = nil
	share := math.NaN()
	if s.decided > 0 {
		share = float64(s.same) / float64(s.decided)
	}
	m.events = append(m.events, riskEvent{what: eventPolicy, on: true, value: share, action: "trades with " + s.digest + " instead of " + m.version})
	m.become(s.trader, s.digest)
}

// decide lets it decide about what the one that trades has decided about.
func (s *shadow) decide() error {
	if s.trader.Weighs() {
		weights, err := s.trader.Weigh()
		s.weights = append(s.weights[:0], weights...)
		return err
	}
	orders, err := s.trader.Decide()
	s.orders = append(s.orders[:0], orders...)
	return err
}

// differs is the number of orders that are others, or the largest difference of target weights.
func (s *shadow) differs(orders []int64, weights []float64) (d float64) {
	for i, o := range s.orders {
		if o != orders[i] {
			d++
		}
	}
	for i, w := range s.weights {
		d = max(d, math.Abs(w-weights[i]))
	}
	return d
}

// Close frees the policies that the machine has opened.
func (m *Machine) Close() (err error) {
	if m.shadow != nil {
		err = m.shadow.trader.Close()
	}
	if m.own != nil {
		err = errors.Join(err, m.own.Close())
	}
	return err
}

// policyOf returns the version that a command of the service itself names.
func policyOf(e *Event) (digest string, ok bool) {
	if e.Offset >= 0 {
		return "", false
	}
	return strings.CutPrefix(string(e.Value), CommandPolicy+" ")
}
