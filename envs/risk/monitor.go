package risk

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/configs"
)

// Monitor watches the value of one book, a portfolio or an expert that trades on paper: its
// drawdown and the CVaR of its daily returns. It knows nothing of positions. It is not safe for
// concurrent use, and allocates nothing after it was made.
type Monitor struct {
	// OnAlert, unless nil, is called by Observe when a limit is passed and when that has ended.
	OnAlert func(Alert)

	config Config // with what its zeros stand for
	// day is that of the last value, 0 before there is one, such as 20240131.
	day int
	// peaks [window] is a ring of the highest value of each day; days are filled, the newest is
	// before next.
	peaks       []float64
	days, next  int
	base, value float64 // the last values of the day before and of this one
	returns     returns

	drawdown, cvar float64
	known          bool // the CVaR
	stopped, cut   bool
	held           float64 // by Scale: 1 less what limits are multiplied by
}

// Alert says that a limit of a book was passed, or that this has ended.
type Alert struct {
	Time time.Time
	// Limit is BoundDrawdown or BoundCVaR, and On whether it is passed from now on.
	Limit Bounds
	On    bool
	// Value is the drawdown or the CVaR, and Threshold what it has passed: the limit, or the value
	// at which it ends.
	Value, Threshold float64
	// Flattens says that positions are sold at the limit on the drawdown: Drawdown.Then.
	Flattens bool
}

// Effect says in the words of [Alert.String] what follows while the limit is passed.
func (a Alert) Effect() string {
	switch {
	case a.Limit == BoundCVaR:
		return "exposure is cut"
	case a.Flattens:
		return "everything is sold"
	}
	return "nothing is bought"
}

// String says it in a sentence for logs.
func (a Alert) String() string {
	what := "drawdown"
	if a.Limit == BoundCVaR {
		what = "CVaR of daily returns"
	}
	if a.On {
		return fmt.Sprintf("risk: %s: the %s is %.2f %%, beyond the limit of %.4g %%: %s", a.Time.Format(time.DateTime), what, a.Value*100, a.Threshold*100, a.Effect())
	}
	return fmt.Sprintf("risk: %s: the %s is %.2f %%, back at %.4g %%: its limit has ended", a.Time.Format(time.DateTime), what, a.Value*100, a.Threshold*100)
}

// NewMonitor returns a monitor that has seen nothing. Of the configuration it uses Drawdown and
// CVaR.
func NewMonitor(c Config) (*Monitor, error) {
	var p configs.Problems
	c.Check(&p, "")
	if err := p.Err(); err != nil {
		return nil, fmt.Errorf("risk: %w", err)
	}
	c = c.Complete()
	m := &Monitor{config: c}
	if c.Drawdown.Limit > 0 {
		m.peaks = make([]float64, c.Drawdown.Window)
	}
	if c.CVaR.Limit > 0 {
		m.returns = newReturns(c.CVaR.Window)
	}
	return m, nil
}

// Measure makes the monitor measure the drawdown and the CVaR also where there is no limit on them,
// over the windows of the configuration, and forget all values. What it limits remains the same.
func (m *Monitor) Measure() {
	m.peaks, m.returns = make([]float64, m.config.Drawdown.Window), newReturns(m.config.CVaR.Window)
	m.Reset()
}

// Reset forgets all values, and what Scale was called with.
func (m *Monitor) Reset() {
	m.returns.reset()
	*m = Monitor{OnAlert: m.OnAlert, config: m.config, peaks: m.peaks, returns: m.returns}
}

// Observe takes the value of the book at a time. Values come in the order of time, any number of
// them in a day, as the time's own location has it; the same again changes nothing. A value that is
// no positive number is a drawdown of 1 and leaves no other trace.
func (m *Monitor) Observe(at time.Time, value float64) {
	if !(value > 0) || math.IsInf(value, 0) {
		m.drawdown = 1
		m.decide(at)
		return
	}
	day := DayOf(at)
	fresh := day > m.day
	if fresh {
		m.base, m.day = m.value, day
	}
	m.value = value
	m.raisePeak(fresh)
	// The first day has no return.
	if m.returns.ring != nil && m.base > 0 {
		if r := value/m.base - 1; fresh || len(m.returns.sorted) == 0 {
			m.returns.push(r)
		} else {
			m.returns.replace(r)
		}
	}
	m.measure()
	m.decide(at)
}

// DayOf is the day of a time as a number, such as 20240131.
func DayOf(at time.Time) int {
	y, month, d := at.Date()
	return y*10_000 + int(month)*100 + d
}

// raisePeak takes the present value into the highest of its day.
func (m *Monitor) raisePeak(fresh bool) {
	switch n := len(m.peaks); {
	case n == 0:
	case fresh || m.days == 0:
		m.peaks[m.next] = m.value
		m.next = (m.next + 1) % n
		m.days = min(m.days+1, n)
	default:
		last := &m.peaks[(m.next+n-1)%n]
		*last = max(*last, m.value)
	}
}

// measure computes the drawdown and the CVaR.
func (m *Monitor) measure() {
	if m.days > 0 {
		peak := slices.Max(m.peaks[:m.days]) // A ring that is not full begins at 0.
		m.drawdown = 1 - m.value/peak
	}
	if level := m.config.CVaR.Level; m.returns.ring != nil && len(m.returns.sorted) >= tailDays(level) {
		m.cvar, m.known = m.returns.tail(level), true
	}
}

// decide passes the limits, or ends it.
func (m *Monitor) decide(at time.Time) {
	d, v := &m.config.Drawdown, &m.config.CVaR
	m.trip(at, &m.stopped, BoundDrawdown, m.drawdown, d.Limit, d.Resume)
	if m.known {
		m.trip(at, &m.cut, BoundCVaR, m.cvar, v.Limit, v.Resume)
	}
}

func (m *Monitor) trip(at time.Time, on *bool, which Bounds, value, limit, resume float64) {
	if limit == 0 {
		return
	}
	threshold := limit
	switch {
	case !*on && value > limit:
	case *on && value <= resume:
		threshold = resume
	default:
		return
	}
	if *on = !*on; m.OnAlert != nil {
		m.OnAlert(Alert{at, which, *on, value, threshold, which == BoundDrawdown && m.config.Drawdown.Then == Flatten})
	}
}

// Drawdown is the present drawdown from the highest value of the window, a fraction; 0 where there
// is neither a limit on it nor [Monitor.Measure].
func (m *Monitor) Drawdown() float64 { return m.drawdown }

// CVaR is the CVaR of the daily returns of the window, positive for a loss; known is false where
// there are too few days, or neither a limit on it nor [Monitor.Measure].
func (m *Monitor) CVaR() (loss float64, known bool) { return m.cvar, m.known }

// CVaRAt is CVaR with another share of days that are not in the tail, in (0, 1).
func (m *Monitor) CVaRAt(level float64) (loss float64, known bool) {
	if m.returns.ring == nil || len(m.returns.sorted) < tailDays(level) {
		return 0, false
	}
	return m.returns.tail(level), true
}

// Level is the share of days that are not in the tail of the CVaR.
func (m *Monitor) Level() float64 { return m.config.CVaR.Level }

// Stopped reports whether the drawdown has passed its limit and not come back to Drawdown.Resume:
// nothing is to be bought, or the expert is to be masked.
func (m *Monitor) Stopped() bool { return m.stopped }

// Flattens reports whether positions are to be sold.
func (m *Monitor) Flattens() bool { return m.stopped && m.config.Drawdown.Then == Flatten }

// Factor is what limits on positions are multiplied by: CVaR.Cut while the CVaR is beyond its limit
// and has not come back to CVaR.Resume, and else 1, times the factor of Scale.
func (m *Monitor) Factor() float64 {
	f := 1 - m.held
	if m.cut {
		f *= m.config.CVaR.Cut
	}
	return f
}

// Scale multiplies limits on positions by a further factor in [0, 1], in the place of the last one:
// that of an expert who is in charge of the book, say. It is no part of Memory: whoever sets it
// does so again.
func (m *Monitor) Scale(factor float64) { m.held = 1 - factor }

// Limits returns the largest parts of the value that may be in assets together and in one, +Inf
// where there is no limit.
func (m *Monitor) Limits() (exposure, weight float64) {
	exposure, weight = math.Inf(1), math.Inf(1)
	if f := m.Factor(); m.config.MaxExposure > 0 || f < 1 {
		exposure = or(m.config.MaxExposure, 1) * f
	}
	if m.config.MaxWeight > 0 {
		weight = m.config.MaxWeight * m.Factor()
	}
	return exposure, weight
}

// Memory is what a monitor remembers, for JSON. Lists begin with the oldest.
type Memory struct {
	// Day is that of the last value, such as 20240131, 0 before there is one.
	Day int `json:"day,omitzero"`
	// Base and Value are the last values of the day before and of this one.
	Base  float64 `json:"base,omitzero"`
	Value float64 `json:"value,omitzero"`
	// Peaks are the highest values of days, Returns the returns of days.
	Peaks   []float64 `json:"peaks,omitempty"`
	Returns []float64 `json:"returns,omitempty"`
	Stopped bool      `json:"stopped,omitzero"`
	Cut     bool      `json:"cut,omitzero"`
}

// Memory returns what the monitor remembers.
func (m *Monitor) Memory() Memory {
	s := Memory{Day: m.day, Base: m.base, Value: m.value, Returns: m.returns.all(), Stopped: m.stopped, Cut: m.cut}
	for i := range m.days {
		s.Peaks = append(s.Peaks, m.peaks[(m.next-m.days+i+len(m.peaks))%len(m.peaks)])
	}
	return s
}

// Restore makes the monitor what it was when its Memory was taken. A measure without a limit may be
// missing, and begins again. What cannot be is an error that changes nothing.
func (m *Monitor) Restore(s Memory) error {
	number := func(x float64) bool { return x >= 0 && !math.IsInf(x, 0) }
	switch {
	case s.Day < 0 || !number(s.Base) || !number(s.Value) || (s.Day == 0) != (s.Value == 0):
		return fmt.Errorf("risk: the day %d with a value of %g after %g", s.Day, s.Value, s.Base)
	case len(s.Peaks) > len(m.peaks) || len(s.Returns) > len(m.returns.ring):
		return fmt.Errorf("risk: %d days of drawdown and %d of CVaR, expected at most %d and %d", len(s.Peaks), len(s.Returns), len(m.peaks), len(m.returns.ring))
	case missing(s.Day > 0, len(s.Peaks), m.config.Drawdown.Limit) || missing(s.Base > 0, len(s.Returns), m.config.CVaR.Limit):
		return errors.New("risk: the days of a window are missing")
	case s.Stopped && m.config.Drawdown.Limit == 0 || s.Cut && m.config.CVaR.Limit == 0:
		return errors.New("risk: a limit was passed that there is none of")
	}
	for _, x := range s.Peaks {
		if !(x > 0) || math.IsInf(x, 0) {
			return fmt.Errorf("risk: a highest value of %g", x)
		}
	}
	for _, x := range s.Returns {
		if !(x > -1) || math.IsInf(x, 0) {
			return fmt.Errorf("risk: a return of %g", x)
		}
	}
	m.Reset()
	m.day, m.base, m.value, m.stopped, m.cut = s.Day, s.Base, s.Value, s.Stopped, s.Cut
	m.days, m.next = len(s.Peaks), 0
	if copy(m.peaks, s.Peaks); m.peaks != nil {
		m.next = m.days % len(m.peaks)
	}
	for _, x := range s.Returns {
		m.returns.push(x)
	}
	if m.value > 0 {
		m.measure()
	}
	return nil
}

// missing reports whether a window does not have the days that were seen: none where there were
// some, beside a limit, or some where there were none.
func missing(seen bool, days int, limit float64) bool {
	if !seen {
		return days > 0
	}
	return days == 0 && limit > 0
}
