package livetrade

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/stream"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/models/drift"
	"github.com/onnxrl/onnxrl/runtime/spans"
)

// Machine decides on events, and on nothing else. It is not safe for concurrent use.
type Machine struct {
	name    string
	version string // of the policy
	from    bars.Date
	trader  *trader.Trader
	assets  []string // [N], those of every version
	gather  *stream.Gatherer
	monitor *monitor
	msg     stream.Message
	batch   Batch
	events  []riskEvent // since the last batch
	// told is how many of the events were told to onAlert, which may be nil.
	told    int
	onAlert func(*Alert)
	gains   Gains

	seq     uint64 // of the last batch
	decided uint64 // decisions
	ordered uint64 // the batch of the last decision, whose orders a paper account executes; 0 for none
	desk    *desk  // nil where that is what executes
	next    []int  // offsets, of the partitions ids
	ids     []int32
	orders  []int64
	wanted  []int64 // orders as the policy gave them
	weights []float64
	differs float64 // what decides beside, in the last decision
	// took is how long the policy's run of the last decision took, and trace its way, by a clock
	// that decides nothing.
	took   time.Duration
	tracer *spans.Tracer // nil without spans
	trace  spans.Trace

	// Open opens a version of the policy beside a trader, by its digest.
	Open   func(beside *trader.Trader, digest string) (*trader.Trader, error)
	swap   Swap
	shadow *shadow
	own    *trader.Trader // that trades, where the machine has opened it
	chosen bool           // it was said which version trades from the beginning
}

// The stages from a bar to its orders, as spans have them.
const (
	stageWait     = "wait" // from the arrival of the last bar
	stageFeatures = "features"
	stagePolicy   = "policy"
	stageRisk     = "risk"
	stagePublish  = "publish"
)

// orderNames are the actions of an asset in the order of package trading.
var orderNames = [...]string{"buy", "sell", "hold"}

// CashName stands for the cash among symbols.
const CashName = "cash"

// NewMachine returns a machine before its first event that trades with a trader, which it does not
// close. version names the policy in signals. It calls say with each row that it mends or leaves
// out.
func NewMachine(c *Config, t *trader.Trader, version string, say func(string)) (*Machine, error) {
	p := t.Feed.Pipeline()
	if err := c.fits(p); err != nil {
		return nil, err
	}
	g, err := stream.NewGatherer(c.Bars, p, say)
	if err != nil {
		return nil, err
	}
	n := len(p.Assets)
	m := &Machine{swap: c.Swap, name: c.Name, version: version, from: c.From, trader: t, assets: p.Assets, gather: g, orders: make([]int64, n), wanted: make([]int64, n), weights: make([]float64, n+1)}
	m.monitor = newMonitor(c.Risk, p)
	t.Portfolio.Account().Risk().OnAlert = m.alert
	if c.Broker.Kind != "" {
		if err := t.Portfolio.Elsewhere(); err != nil {
			return nil, fmt.Errorf("broker: %w", err)
		}
		m.desk = newDesk(c, p, t.Portfolio.Lot())
	}
	return m, nil
}

// alert notes what the limits of the environment say.
func (m *Machine) alert(a risk.Alert) {
	action := a.Effect()
	if !a.On {
		action = "the limit has ended"
	}
	m.events = append(m.events, riskEvent{what: a.Limit.Names()[0], on: a.On, value: a.Value, threshold: a.Threshold, action: action})
}

// Trades reports whether the exchange of the bars trades on the day of a time; where none is named,
// it does.
func (m *Machine) Trades(at time.Time) bool { return m.gather.Open(at) }

// CVaRLevel is the level of the CVaR of the positions' records.
func (m *Machine) CVaRLevel() float64 { return m.trader.Portfolio.Account().Risk().Level() }

// Seq is the number of the last batch.
func (m *Machine) Seq() uint64 { return m.seq }

// Decisions is how many there were.
func (m *Machine) Decisions() uint64 { return m.decided }

// Time is that of the bars of the last decision.
func (m *Machine) Time() time.Time { return m.trader.Feed.Time() }

// Value is that of the portfolio.
func (m *Machine) Value() float64 { return m.trader.Portfolio.Value() }

// Cash is that of the portfolio.
func (m *Machine) Cash() float64 { return m.trader.Portfolio.Account().Cash() }

// Policy is the digest of the version that trades.
func (m *Machine) Policy() string { return m.version }

// Drift is how far what the policy sees is from what it was published on; see trader.Trader.Drift.
// A start begins its count again, and no decision depends on it.
func (m *Machine) Drift() (drift.Drift, string) { return m.trader.Drift() }

// Status returns how the machine stands.
func (m *Machine) Status() Status {
	beside := ""
	if m.shadow != nil {
		beside = m.shadow.digest
	}
	differs, open := 0, 0
	if m.desk != nil {
		differs, open = m.desk.differs, len(m.desk.tickets)
	}
	return Status{Seq: m.seq, Decisions: m.decided, Differs: differs, Open: open, Policy: m.version, Shadow: beside, Killed: m.monitor.killed, Reason: m.monitor.reason, Heard: m.monitor.heard, Bars: m.gather.Counters()}
}

// Due is the time of the clock at which the machine is to be told that it is that late; ok is false
// where it waits for nothing.
func (m *Machine) Due() (time.Time, bool) {
	due, ok := m.gather.Due()
	if stale, waits := m.monitor.due(); waits && (!ok || stale.Before(due)) {
		due, ok = stale, true
	}
	return due, ok
}

// Offsets calls to with the offset behind the last message of each partition that there was one of.
func (m *Machine) Offsets(to func(partition int32, next int64)) {
	for i, id := range m.ids {
		to(id, int64(m.next[i]))
	}
}

// Next is the offset behind the last message of a partition, −1 before the first.
func (m *Machine) Next(partition int32) int64 {
	if i := slices.Index(m.ids, partition); i >= 0 {
		return int64(m.next[i])
	}
	return -1
}

// Apply takes an event and calls publish with each batch that follows from it, whose memory is used
// again. An error that is no *Bad is the end of the machine.
func (m *Machine) Apply(e *Event, publish func(*Batch) error) error {
	switch e.Kind {
	case Bar:
		m.passed(e)
		m.monitor.bar(e.Came)
		if err := m.msg.Decode(e.Value); err != nil {
			m.gather.Malformed()
			return &Bad{Partition: e.Partition, Offset: e.Offset, Value: e.Value, Err: err}
		}
		if err := m.gather.Take(e.Partition, &m.msg, e.Came); err != nil {
			return err
		}
	case Behind, CaughtUp:
		m.gather.Behind(e.Partition, e.Kind == Behind)
	case Clock:
		m.gather.Expire(e.Came)
		if x, ok := m.monitor.clock(e.Came); ok {
			m.events = append(m.events, x)
		}
	case Report:
		if err := m.report(e); err != nil {
			return err
		}
	case Command:
		if e.Offset >= 0 {
			m.passed(e)
		}
		if digest, ok := policyOf(e); ok {
			if err := m.policy(digest); err != nil {
				return err
			}
			break
		}
		x, err := m.monitor.command(string(e.Value))
		if err != nil {
			return &Bad{Partition: e.Partition, Offset: e.Offset, Value: e.Value, Err: err}
		}
		m.events = append(m.events, x)
		if m.monitor.killed && m.desk != nil {
			m.desk.withdraw()
		}
	}
	for {
		at, rows, ok, err := m.gather.Next()
		if err != nil {
			return err
		}
		if !ok {
			return m.news(e.Came, publish)
		}
		if err := m.time(at, rows, e.Came, publish); err != nil {
			return err
		}
	}
}

// passed notes the offset of an event.
func (m *Machine) passed(e *Event) {
	i := slices.Index(m.ids, e.Partition)
	if i < 0 {
		i = len(m.ids)
		m.ids, m.next = append(m.ids, e.Partition), append(m.next, 0)
	}
	m.next[i] = int(e.Offset) + 1
}

// Bad is a message that cannot be read. The machine goes on.
type Bad struct {
	Partition int32
	Offset    int64
	Value     []byte
	Err       error
}

func (b *Bad) Error() string {
	return fmt.Sprintf("partition %d, offset %d: %v", b.Partition, b.Offset, b.Err)
}

func (b *Bad) Unwrap() error { return b.Err }

// time decides at the rows of a time.
func (m *Machine) time(at time.Time, rows []live.Row, came time.Time, publish func(*Batch) error) error {
	t := m.trader
	begin := time.Now()
	if err := t.Append(at, rows); err != nil {
		return err
	}
	if !t.Feed.Ready() || m.from.After(at) {
		return nil
	}
	if d := m.desk; d != nil && !d.taken {
		if d.tally == nil {
			return errors.New("a decision before the broker has told what it holds")
		}
		if err := t.Portfolio.Hold(d.holdings(), d.tally.Cash()); err != nil {
			return fmt.Errorf("holdings of the broker: %w", err)
		}
		d.taken = true
	}
	m.seq++
	m.decided++
	m.tracer.Begin(context.Background(), &m.trace, "decision", came, spans.Carrier{})
	m.trace.Mark(stageWait, begin)
	m.trace.Mark(stageFeatures, time.Now())
	err := m.publish(rows, came, publish)
	if m.tracer == nil {
		return err // The rest allocates.
	}
	m.trace.End(time.Now(), err, attribute.String("service", m.name), attribute.Int64("seq", int64(m.seq)))
	return err
}

// publish decides and publishes what follows.
func (m *Machine) publish(rows []live.Row, came time.Time, publish func(*Batch) error) error {
	t := m.trader
	m.batch.reset(m.seq, t.Feed.Time())
	m.writeFills()
	// They are as of the close, before what is decided now: a fill at the same close belongs to the
	// next batch. Published they are last, which says that the batch is whole.
	m.gains.Add(t.Feed.Time(), t.Portfolio.Value())
	m.writePositions()
	n := len(m.batch.Records) - 1
	positions := m.batch.Records[n]
	m.batch.Records = m.batch.Records[:n]
	m.monitor.observe(t, rows, &m.events)
	if err := m.decide(came); err != nil {
		return err
	}
	m.ordered = m.seq
	if s := m.shadow; s != nil {
		s.decided++
		if m.differs == 0 {
			s.same++
		}
		if s.left--; s.left == 0 {
			m.takeOver()
		}
	}
	m.tell(m.seq, came)
	m.writeRisk()
	m.batch.Records = append(m.batch.Records, positions)
	m.trace.Mark(stageRisk, time.Now())
	m.batch.Trace = m.trace.Carrier()
	err := publish(&m.batch)
	m.trace.Mark(stagePublish, time.Now())
	return err
}

// news publishes what has happened beside decisions, once there are bars: limits, and what a broker
// has done.
func (m *Machine) news(came time.Time, publish func(*Batch) error) error {
	if m.desk != nil && m.desk.taken {
		m.monitor.sending(came, m.desk.release(came))
	}
	if len(m.events) == 0 && !m.desk.news() {
		return nil
	}
	if !m.trader.Feed.Begun() {
		m.tell(m.seq+1, came)
		return nil
	}
	m.seq++
	m.batch.reset(m.seq, m.trader.Feed.Time())
	if m.desk != nil {
		m.writeExecuted()
		m.writeTickets()
	}
	m.tell(m.seq, came)
	m.writeRisk()
	m.writePositions()
	m.batch.Trace = spans.Carrier{}
	return publish(&m.batch)
}

// decide runs the policy, lets the monitor say what becomes of its decision, and gives the rest to
// the portfolio.
func (m *Machine) decide(came time.Time) error {
	t := m.trader
	start := time.Now() // It measures, and decides nothing.
	var orders []int64
	var weights []float64
	var err error
	if t.Weighs() {
		weights, err = t.Weigh()
	} else {
		orders, err = t.Decide()
	}
	end := time.Now()
	m.took = end.Sub(start)
	m.trace.Mark(stagePolicy, end)
	if err == nil && m.shadow != nil {
		err = m.shadow.decide()
	}
	if err != nil {
		return err
	}
	m.differs = 0
	if m.shadow != nil {
		m.differs = m.shadow.differs(orders, weights)
	}
	m.monitor.tellExperts(t.Experts(), t.ExpertLimits(), &m.events)
	allowed := m.monitor.allow(came, &m.events)
	if m.desk != nil {
		m.desk.withdraw()
	}
	if t.Weighs() {
		copy(m.weights, weights)
		if err := trading.CheckWeights(m.assets, m.weights); err != nil {
			allowed = min(allowed, m.monitor.invalid(err, &m.events))
		}
		return m.rebalance(allowed, came)
	}
	copy(m.orders, orders)
	return m.order(allowed, came)
}

// order gives orders to the portfolio as far as they are allowed.
func (m *Machine) order(allowed level, came time.Time) error {
	copy(m.wanted, m.orders)
	for i := range m.orders {
		switch {
		case m.desk != nil && m.desk.busy(i):
			// An order of before may still be executed: nothing was refused.
			m.orders[i], m.wanted[i] = trading.Hold, trading.Hold
		case allowed == flattened:
			m.orders[i] = trading.Sell
		case allowed == holding, allowed == cutting && m.orders[i] == trading.Buy, m.monitor.barred(i):
			m.orders[i] = trading.Hold
		}
	}
	if err := m.trader.Portfolio.Decide(m.orders); err != nil {
		return err
	}
	b, assets := &m.batch, m.assets
	m.beginSignal(allowed)
	b.open("orders")
	for i, o := range m.orders {
		b.str(assets[i], orderNames[o])
	}
	b.close()
	if !slices.Equal(m.orders, m.wanted) {
		b.open("refused")
		for i, o := range m.wanted {
			if o != trading.Hold && o != m.orders[i] {
				b.str(assets[i], orderNames[o])
			}
		}
		b.close()
	}
	b.end()
	if m.desk != nil {
		m.want(came)
		return nil
	}
	sent := 0
	for i, o := range m.orders {
		if o == trading.Hold {
			continue
		}
		m.beginOrder(i)
		b.str("order", orderNames[o])
		b.end()
		sent++
	}
	m.monitor.sending(came, sent)
	return nil
}

// rebalance is order where actions are target weights.
func (m *Machine) rebalance(allowed level, came time.Time) error {
	assets := m.assets
	b := &m.batch
	switch allowed {
	case flattened:
		clear(m.weights)
		m.weights[len(assets)] = 1
	case holding:
		m.beginSignal(allowed)
		b.end()
		return nil
	case cutting:
		for i := range assets {
			m.weights[len(assets)] += m.weights[i] * (1 - m.monitor.config.Cut)
			m.weights[i] *= m.monitor.config.Cut
		}
	}
	if err := m.trader.Portfolio.Rebalance(m.weights); err != nil {
		return err
	}
	m.beginSignal(allowed)
	b.open("targets")
	for i, w := range m.weights {
		b.num(targetName(assets, i), w)
	}
	b.close()
	b.end()
	if m.desk != nil {
		m.want(came)
		return nil
	}
	for i := range assets {
		m.beginOrder(i)
		b.num("target", m.weights[i])
		b.end()
	}
	m.monitor.sending(came, len(assets))
	return nil
}

func targetName(assets []string, i int) string {
	if i < len(assets) {
		return assets[i]
	}
	return CashName
}

func (m *Machine) beginSignal(allowed level) {
	m.batch.begin(Signals, m.name)
	m.batch.str("policy", m.version)
	if m.shadow != nil {
		m.batch.open("shadow")
		m.batch.str("policy", m.shadow.digest)
		m.batch.num("differs", m.differs)
		m.batch.close()
	}
	if i := m.trader.InCharge(); i >= 0 {
		m.batch.str("expert", expertName(i))
	}
	if allowed != free {
		m.batch.str("limited", allowed.String())
		m.batch.list("because", m.monitor.because)
	}
}

// beginOrder begins the record of an asset's order. Its id is a function of what was decided.
func (m *Machine) beginOrder(asset int) {
	b, symbol := &m.batch, m.assets[asset]
	b.begin(Orders, symbol)
	b.key("id")
	m.appendID(m.seq, symbol)
	b.str("symbol", symbol)
}

// appendID writes the id of an order as a text of JSON.
func (m *Machine) appendID(seq uint64, symbol string) {
	b := &m.batch
	b.id = append(append(b.id[:0], m.name...), '-')
	b.id = append(strconv.AppendUint(b.id, seq, 10), '-')
	b.id = append(b.id, symbol...)
	b.text = stream.AppendText(b.text, b.id)
}

// writeFills writes what the orders before came to.
func (m *Machine) writeFills() {
	if m.desk != nil {
		m.writeExecuted()
		return
	}
	if m.ordered == 0 {
		return
	}
	b, assets := &m.batch, m.assets
	for _, x := range m.trader.Portfolio.Account().Fills() {
		symbol := assets[x.Asset]
		b.begin(Fills, symbol)
		b.key("order")
		m.appendID(m.ordered, symbol)
		b.str("symbol", symbol)
		b.num("shares", x.Shares)
		b.num("price", x.Price)
		b.num("fee", x.Fee)
		b.end()
	}
}

// writeRisk writes what happened to the limits on risk since the last batch.
func (m *Machine) writeRisk() {
	for i := range m.events {
		x := &m.events[i]
		m.batch.begin(RiskEvents, m.name)
		m.batch.str("event", x.what)
		m.batch.flag("on", x.on)
		if x.symbol != "" {
			m.batch.str("symbol", x.symbol)
		}
		if x.expert != "" {
			m.batch.str("expert", x.expert)
		}
		m.batch.num("value", x.value)
		m.batch.num("threshold", x.threshold)
		if x.action != "" {
			m.batch.str("action", x.action)
		}
		m.batch.end()
	}
	m.events, m.told = m.events[:0], 0
}

func (m *Machine) writePositions() {
	b, p := &m.batch, m.trader.Portfolio
	b.begin(Positions, m.name)
	b.num("value", p.Value())
	b.num("cash", p.Account().Cash())
	b.num("pnl", m.gains.PnL())
	b.num("pnl_day", m.gains.Day())
	b.open("positions")
	for i, q := range p.Account().Positions() {
		b.num(m.assets[i], q)
	}
	b.close()
	b.open("prices")
	for i, x := range p.Closes() {
		b.num(m.assets[i], x)
	}
	b.close()
	r := p.Account().Risk()
	b.num("drawdown", r.Drawdown())
	if loss, known := r.CVaR(); known {
		b.num("cvar", loss)
	}
	if loss, known := r.CVaRAt(0.95); known {
		b.num("cvar95", loss)
	}
	b.flag("stopped", r.Stopped())
	b.flag("cut", r.Factor() < 1)
	b.open("bound")
	for _, name := range p.Account().Bound().Names() {
		b.flag(name, true)
	}
	b.close()
	b.end()
}

// machineState is the form of a snapshot.
type machineState struct {
	Version int    `json:"version"`
	Name    string `json:"name"`
	Policy  string `json:"policy"`
	// Events is the number of events of the journal that led here.
	Events    int64           `json:"events"`
	Seq       uint64          `json:"seq"`
	Decided   uint64          `json:"decided"`
	Ordered   uint64          `json:"ordered"`
	Desk      *deskState      `json:"desk,omitempty"`
	Offsets   map[int32]int64 `json:"offsets"`
	Order     []int32         `json:"order"` // of partitions
	Feed      []byte          `json:"feed"`
	Portfolio []byte          `json:"portfolio"`
	Memory    []byte          `json:"memory"`
	Gather    []byte          `json:"gather"`
	Monitor   monitorState    `json:"monitor"`
	Pending   []savedEvent    `json:"pending"`
	Gains     Gains           `json:"gains"`
	Chosen    bool            `json:"chosen"`
	Shadow    *savedShadow    `json:"shadow,omitempty"`
}

// savedShadow is the form of a version that decides beside.
type savedShadow struct {
	Policy  string `json:"policy"`
	Left    int    `json:"left"`
	Decided int    `json:"decided"`
	Same    int    `json:"same"`
	Memory  []byte `json:"memory"`
}

// machineVersion is that of machineState.
const machineVersion = 1

// save returns the state after so many events.
func (m *Machine) save(events int64) (*machineState, error) {
	portfolio, err := m.trader.Portfolio.SaveState()
	if err != nil {
		return nil, err
	}
	s := &machineState{
		Version: machineVersion, Name: m.name, Policy: m.version, Events: events, Seq: m.seq, Decided: m.decided, Ordered: m.ordered, Desk: m.desk.save(), Offsets: map[int32]int64{}, Order: slices.Clone(m.ids),
		Feed: m.trader.Feed.SaveState(), Portfolio: portfolio, Memory: m.trader.SaveMemory(), Gather: m.gather.SaveState(), Monitor: m.monitor.save(), Chosen: m.chosen, Gains: m.gains,
	}
	m.Offsets(func(id int32, next int64) { s.Offsets[id] = next })
	if x := m.shadow; x != nil {
		s.Shadow = &savedShadow{x.digest, x.left, x.decided, x.same, x.trader.SaveMemory()}
	}
	for _, x := range m.events {
		s.Pending = append(s.Pending, savedEvent{x.what, x.on, x.symbol, x.expert, x.value, x.threshold, x.action})
	}
	return s, nil
}

// load makes a fresh machine what it was.
func (m *Machine) load(s *machineState) error {
	switch {
	case s.Version != machineVersion:
		return fmt.Errorf("its version is %d, this program knows %d", s.Version, machineVersion)
	case s.Name != m.name:
		return fmt.Errorf("it is of the service %q, and this is %q", s.Name, m.name)
	case len(s.Order) != len(s.Offsets):
		return errors.New("its offsets do not fit its partitions")
	}
	if err := errors.Join(m.trader.Feed.LoadState(s.Feed), m.gather.LoadState(s.Gather)); err != nil {
		return err
	}
	if err := m.trader.Portfolio.LoadState(s.Portfolio); err != nil {
		return err
	}
	if s.Policy != m.version {
		t, err := m.open(s.Policy)
		if err != nil {
			return err
		}
		m.become(t, s.Policy)
	}
	if err := m.trader.LoadMemory(s.Memory); err != nil {
		return err
	}
	if x := s.Shadow; x != nil {
		if x.Left < 1 {
			return fmt.Errorf("shadow: %d decisions are left", x.Left)
		}
		if err := m.cast(x.Policy, x.Left); err != nil {
			return err
		}
		m.shadow.decided, m.shadow.same = x.Decided, x.Same
		if err := m.shadow.trader.LoadMemory(x.Memory); err != nil {
			return err
		}
	}
	if err := errors.Join(m.monitor.load(s.Monitor), m.desk.load(s.Desk)); err != nil {
		return err
	}
	m.seq, m.decided, m.ordered, m.chosen, m.ids, m.next = s.Seq, s.Decided, s.Ordered, s.Chosen, s.Order, nil
	for _, id := range s.Order {
		next := s.Offsets[id]
		if next < 0 || next > math.MaxInt {
			return fmt.Errorf("the offset %d of partition %d", next, id)
		}
		m.next = append(m.next, int(next))
	}
	for _, x := range s.Pending {
		m.events = append(m.events, riskEvent{x.Event, x.On, x.Symbol, x.Expert, x.Value, x.Threshold, x.Action})
	}
	// Before the snapshot they were told.
	m.told, m.gains = len(m.events), s.Gains
	return nil
}

// WarmUp begins a fresh machine with the state of a feed, such as that with which a policy was
// published. Messages up to its time are left out.
func (m *Machine) WarmUp(state []byte) error {
	if err := m.trader.Feed.LoadState(state); err != nil {
		return err
	}
	m.gather.Begin(m.trader.Feed.Time())
	return nil
}
