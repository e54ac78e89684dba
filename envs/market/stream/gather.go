package stream

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/exchange"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/rules"
)

// Gatherer makes the rows of one time after another of messages. It is not safe for concurrent use,
// and allocates nothing once as many times were open as ever are.
type Gatherer struct {
	rules   Rules
	assets  []string
	index   map[string]int
	extra   []string // of messages, the first of the pipeline's
	zone    *time.Location
	open    *exchange.Calendar // nil without one
	say     func(string)
	clean   []*bars.Incremental
	limiter *rules.Limiter
	limits  []func(*bars.Record) // by asset, nil without a rule book
	series  *bars.Published

	counters Counters
	// pending are the times that are not complete, the earliest first; free are those that are done
	// with.
	pending, free []*moment
	done          time.Time // the last that was complete
	// progress is the latest time of each partition, and home the partition of each asset, −1
	// before its first row.
	progress []partition
	home     []int
	newest   []time.Time // of each asset
	present  []bool      // the asset had a row at the last time that was complete
	rows     []live.Row
	ticks    *ticks // nil where the agent's data are no bars of ticks
	kind     kind
}

// kind is what the messages are.
type kind int

const (
	unknown kind = iota // before the first
	ofBars
	ofTicks
)

// partition is how far one has come; behind says that it has messages that were there before and
// have not been taken.
type partition struct {
	id     int32
	at     time.Time
	behind bool
}

// moment is a time that is not complete.
type moment struct {
	at      time.Time
	arrived []bool
	records []bars.Record
	values  []float64 // of Extra, [N,E] with room for published ones
	left    int
	first   time.Time // when the first row came, by the clock, or will if it is of ticks
	expired bool
	missing int // no row before this one is
	ticked  tickedMoment
}

// NewGatherer returns a gatherer of a pipeline's assets that has seen nothing. It calls say with
// each row that it mends or leaves out.
func NewGatherer(r Rules, p live.Pipeline, say func(string)) (*Gatherer, error) {
	if err := configs.Validate(r); err != nil {
		return nil, fmt.Errorf("gather: %w", err)
	}
	c, err := p.Data()
	if err != nil {
		return nil, fmt.Errorf("gather: %w", err)
	}
	n := len(p.Assets)
	g := &Gatherer{
		rules: r, assets: p.Assets, index: map[string]int{}, extra: c.Source.Extra, zone: time.UTC, say: say,
		clean: make([]*bars.Incremental, n), home: make([]int, n), newest: make([]time.Time, n), present: make([]bool, n), rows: make([]live.Row, n), limits: make([]func(*bars.Record), n),
	}
	if zone := c.Source.Timezone; zone != "" {
		if g.zone, err = time.LoadLocation(zone); err != nil {
			return nil, fmt.Errorf("gather: data.source.timezone: %w", err)
		}
	}
	if c.Source.Exchange != "" {
		if g.open, err = exchange.Open(c.Source.Exchange); err != nil {
			return nil, fmt.Errorf("gather: data.source.exchange: %w", err)
		}
	}
	if c.Rules != "" {
		if g.limiter, err = prepared.Limiter(c.Rules, p.Assets); err != nil {
			return nil, fmt.Errorf("gather: %w", err)
		}
	}
	if g.series, err = bars.ReadPublished(c.Series, c.Source.Timezone); err != nil {
		return nil, fmt.Errorf("gather: %w", err)
	}
	if c.Source.Bars != "" {
		// Those of the book are not in the source's list.
		g.extra = p.Extra[:len(p.Extra)-len(g.series.Names)]
		g.ticks = newTicks(c.Source, g.extra, n)
	}
	for i, symbol := range p.Assets {
		g.index[symbol], g.home[i] = i, -1
		g.clean[i] = bars.NewIncremental(symbol, c.Source, c.Quality, p.Needs(), say)
		if p.Adjusted == bars.ByActions {
			g.clean[i].Derive()
		}
		if p.Anchors != nil {
			g.clean[i].Anchor(p.Anchors[i])
		}
		if g.limiter != nil {
			g.limits[i] = func(r *bars.Record) { g.limiter.Limit(i, r, allQuotes) }
		}
	}
	return g, nil
}

// allQuotes are all columns: those that a message lacks are NaN, which is as if they were not
// there.
var allQuotes = func() (list []bars.QuoteColumn) {
	for c := range bars.QuoteColumns {
		list = append(list, c)
	}
	return list
}()

// Begin says that the rows up to a time are known already: they are late.
func (g *Gatherer) Begin(after time.Time) { g.done = after.In(g.zone) }

// Counters returns what was counted so far.
func (g *Gatherer) Counters() Counters { return g.counters }

// Malformed counts a message that could not be read.
func (g *Gatherer) Malformed() {
	g.counters.Messages++
	g.counters.Malformed++
}

// Take takes a message of a partition that came at a time of the clock. The error, of a rule that
// says so, names symbol and time; the message is then not taken.
func (g *Gatherer) Take(id int32, m *Message, came time.Time) error {
	g.counters.Messages++
	i, ok := g.index[string(m.Symbol)]
	if !ok {
		return g.leave(&g.counters.Unknown, g.rules.Unknown, m, "it is none of the agent's assets")
	}
	at := m.Time.In(g.zone)
	if g.rules.Ahead > 0 && at.Sub(came) > g.rules.Ahead {
		return g.leave(&g.counters.Ahead, Drop, m, "it is ahead of the clock")
	}
	if err := g.sameKind(m); err != nil {
		return g.leave(&g.counters.Malformed, Drop, m, err.Error())
	}
	if !g.Open(at) {
		if g.rules.Closed == Drop {
			return g.leave(&g.counters.Closed, Drop, m, "the exchange does not trade on that day")
		}
		g.counters.Closed++
	}
	g.advance(id, i, at)
	if g.kind == ofTicks {
		return g.takeTick(i, m, at, came)
	}
	if !g.done.IsZero() && !at.After(g.done) {
		return g.leave(&g.counters.Late, g.rules.Late, m, "it is late: its time was decided on")
	}
	if at.Before(g.newest[i]) {
		g.counters.OutOfOrder++
	} else {
		g.newest[i] = at
	}
	t := g.moment(at, came)
	if t.arrived[i] {
		return g.again(t, i, m)
	}
	t.arrived[i] = true
	t.left--
	g.put(t, i, m)
	return nil
}

// Open reports whether the exchange trades on the day of a time, as far as it is known. It is safe
// for concurrent use.
func (g *Gatherer) Open(at time.Time) bool {
	at = at.In(g.zone)
	return g.open == nil || !g.open.Knows(at) || g.open.Trades(at)
}

// leave counts a message that is left out. Of each kind the first is reported, and then
// each thousandth.
func (g *Gatherer) leave(count *int64, rule string, m *Message, why string) error {
	*count++
	if rule != Fail && *count%1000 != 1 {
		return nil
	}
	text := fmt.Sprintf("%s: %s: %s", m.Symbol, m.Time.In(g.zone).Format(time.DateTime), why)
	if rule == Fail {
		return fmt.Errorf("gather: %s", text)
	}
	g.say(fmt.Sprintf("%s; left out (%d so far)", text, *count))
	return nil
}

// advance notes how far a partition has come, and that it has the rows of an asset.
func (g *Gatherer) advance(id int32, asset int, at time.Time) {
	k := g.partition(id)
	if g.home[asset] = k; at.After(g.progress[k].at) {
		g.progress[k].at = at
	}
}

// partition finds one.
func (g *Gatherer) partition(id int32) int {
	k := slices.IndexFunc(g.progress, func(p partition) bool { return p.id == id })
	if k < 0 {
		k = len(g.progress)
		g.progress = append(g.progress, partition{id: id})
	}
	return k
}

// Behind says whether a partition has messages that were there before this and have not been taken:
// until a caller says that this is over, assets that no row was seen of may be in it.
func (g *Gatherer) Behind(id int32, is bool) { g.progress[g.partition(id)].behind = is }

// moment finds the time among those that are open, or opens it.
func (g *Gatherer) moment(at, came time.Time) *moment {
	// Nearly always it is the last.
	k := len(g.pending)
	for k > 0 && g.pending[k-1].at.After(at) {
		k--
	}
	if k > 0 && g.pending[k-1].at.Equal(at) {
		return g.pending[k-1]
	}
	var t *moment
	if n := len(g.free); n > 0 {
		t, g.free = g.free[n-1], g.free[:n-1]
		clear(t.arrived)
	} else {
		n := len(g.assets)
		t = &moment{arrived: make([]bool, n), records: make([]bars.Record, n), values: make([]float64, n*g.width())}
	}
	t.at, t.first, t.left, t.expired = at, came, len(g.assets), false
	t.missing = 0
	if g.kind == ofTicks {
		t.ticked.reset(len(g.assets), len(g.extra))
	}
	g.pending = slices.Insert(g.pending, k, t)
	if len(g.pending) > g.rules.Pending && !g.pending[0].expired && !g.IsBehind() {
		g.expire(g.pending[0])
	}
	return t
}

// IsBehind reports whether a partition is.
func (g *Gatherer) IsBehind() bool {
	for k := range g.progress {
		if g.progress[k].behind {
			return true
		}
	}
	return false
}

// Ahead appends the partitions that should wait for others: where more times are open than half of
// what the rules allow and a partition that is behind holds up the earliest of them, those that do
// not hold it up.
func (g *Gatherer) Ahead(to []int32) []int32 {
	if len(g.pending) <= g.rules.Pending/2 {
		return to
	}
	holds := func(p *partition) bool { return p.behind && !g.beyond(p, g.pending[0]) }
	some := false
	for k := range g.progress {
		some = some || holds(&g.progress[k])
	}
	for k := range g.progress {
		if p := &g.progress[k]; some && !holds(p) {
			to = append(to, p.id)
		}
	}
	return to
}

// width is the number of extra values of a row, those published included.
func (g *Gatherer) width() int { return len(g.extra) + len(g.series.Names) }

// put writes a message's row into a time.
func (g *Gatherer) put(t *moment, i int, m *Message) {
	w := g.width()
	values := t.values[i*w : i*w+len(g.extra) : (i+1)*w]
	rec := &t.records[i]
	*rec = m.Record
	rec.Time = t.at
	rec.SetAverage(-1)
	for k, name := range g.extra {
		values[k] = math.NaN()
		for j, have := range m.Names {
			if have == name {
				if values[k] = m.values[j]; j == m.Average() {
					rec.SetAverage(k)
				}
				break
			}
		}
	}
	rec.Extra = values
}

// again is a second row of a time that is not complete.
func (g *Gatherer) again(t *moment, i int, m *Message) error {
	before := t.records[i]
	w := g.width()
	kept := slices.Clone(t.values[i*w : i*w+len(g.extra)])
	before.Extra = kept
	g.put(t, i, m)
	if bars.SameRow(&before, &t.records[i]) {
		g.counters.Duplicate++
		return nil
	}
	if g.counters.Revised++; g.rules.Revised == Last {
		return nil
	}
	copy(t.values[i*w:], kept)
	before.Extra = t.records[i].Extra
	t.records[i] = before
	if g.rules.Revised == Fail {
		return fmt.Errorf("gather: %s: %s: it differs from the row of the same time (close %v and %v); choose one with bars.revised", g.assets[i], t.at.Format(time.DateTime), before.Close, m.Close)
	}
	return nil
}

// Due is the time of the clock at which the earliest time that is open is to expire; ok is false
// where none is, or where there is no grace.
func (g *Gatherer) Due() (due time.Time, ok bool) {
	if g.rules.Grace == 0 || len(g.pending) == 0 {
		return due, false
	}
	due = g.pending[0].first
	for _, t := range g.pending[1:] {
		if t.first.Before(due) {
			due = t.first
		}
	}
	return due.Add(g.rules.Grace), true
}

// Expire says that it is now this time of the clock: times whose grace is over, and those before
// them, are complete as they are. It reports whether there are any.
func (g *Gatherer) Expire(now time.Time) (some bool) {
	if g.rules.Grace == 0 {
		return false
	}
	last := -1
	for i, t := range g.pending {
		if now.Sub(t.first) >= g.rules.Grace {
			last = i
		}
	}
	for _, t := range g.pending[:last+1] {
		if !t.expired {
			g.expire(t)
			some = true
		}
	}
	return some
}

// expire ends the waiting for a time.
func (g *Gatherer) expire(t *moment) {
	t.expired = true
	g.counters.Expired++
}

// complete reports whether the rows of the earliest time are all there.
func (g *Gatherer) complete() bool {
	if len(g.pending) == 0 {
		return false
	}
	t := g.pending[0]
	if t.expired {
		return true
	}
	if g.kind == ofTicks {
		return g.ticksComplete(t)
	}
	if t.left == 0 {
		return true
	}
	for t.arrived[t.missing] {
		t.missing++
	}
	for i, there := range t.arrived[t.missing:] {
		if !there && !g.passed(t.missing+i, t) {
			return false
		}
	}
	return true
}

// beyond reports whether a partition has gone on behind a time.
func (g *Gatherer) beyond(p *partition, t *moment) bool {
	if g.kind == ofTicks {
		return p.at.Sub(t.ticked.until) >= g.rules.OutOfOrder
	}
	return p.at.Sub(t.at) > g.rules.OutOfOrder
}

// passed reports whether no row of an asset is expected at a time any more. An asset that never had
// one may be in any partition.
func (g *Gatherer) passed(i int, t *moment) bool {
	if k := g.home[i]; k >= 0 {
		return g.beyond(&g.progress[k], t)
	}
	for k := range g.progress {
		p := &g.progress[k]
		if p.at.IsZero() && !p.behind {
			continue // It is empty.
		}
		if !g.beyond(p, t) {
			return false
		}
	}
	return true
}

// Next returns the rows [N] of the next time that is complete, cleaned, in the order of the assets,
// valid until the next call. ok is false where none is. The error, of a rule that says so, names
// symbol and row; the gatherer is of no use after it.
func (g *Gatherer) Next() (at time.Time, rows []live.Row, ok bool, err error) {
	for g.complete() {
		t := g.pending[0]
		g.pending = slices.Delete(g.pending, 0, 1)
		g.free = append(g.free, t)
		g.done = t.at
		some, err := g.finish(t)
		if err != nil {
			return at, nil, false, fmt.Errorf("gather: %w", err)
		}
		if some {
			g.counters.Times++
			return t.at, g.rows, true, nil
		}
	}
	return at, nil, false, nil
}

// finish cleans the rows of a time, and reports whether one has prices.
func (g *Gatherer) finish(t *moment) (some bool, err error) {
	g.refresh()
	for i, there := range t.arrived {
		valid, rec := false, &t.records[i]
		if there {
			if rec.Time = t.at; g.kind == ofTicks {
				g.endBar(t, i)
			}
			if valid, err = g.clean[i].Next(rec, g.limits[i]); err != nil {
				return false, err
			}
			if !valid {
				g.counters.Unpriced++
			}
		} else if g.present[i] {
			g.say(fmt.Sprintf("%s: there is no row of %s; it keeps its price and cannot be traded until there is one", g.assets[i], t.at.Format(time.DateTime)))
		}
		if !there && !g.newest[i].IsZero() {
			g.counters.Missing++
		}
		g.present[i] = there
		if valid && len(g.series.Names) > 0 {
			rec.Extra = g.series.At(g.assets[i], t.at, rec.Extra)
		}
		g.rows[i] = live.RowOf(rec, valid)
		some = some || valid
	}
	return some, nil
}

// refresh reads the files of published values again where they have changed. A file that cannot be
// read is reported, and what was read before counts.
func (g *Gatherer) refresh() {
	if len(g.series.Names) == 0 {
		return
	}
	now, err := g.series.Refresh()
	if err != nil {
		g.say(fmt.Sprintf("%v; what was read before counts", err))
		return
	}
	g.series = now
}
