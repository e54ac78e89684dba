package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TradingData is what an agent has traded: a log of onnxrl data live, or what a live service says.
type TradingData struct {
	ID string `json:"id"`
	// Times, Low, High, Value and Cash are of the stretches that the record is divided into, each
	// of one line while there are few: its first time, the least and greatest value in it, and
	// value and cash at its end.
	Times []string  `json:"times"`
	Low   []float64 `json:"low"`
	High  []float64 `json:"high"`
	Value []float64 `json:"value"`
	Cash  []float64 `json:"cash"`
	// Drawdown is how far the value lies below its greatest before.
	Drawdown []float64 `json:"drawdown"`
	// Positions are in shares, of each of Symbols.
	Symbols   []string               `json:"symbols"`
	Positions [][]performance.Number `json:"positions"`
	// Weights are the shares of the value of each of Symbols; it is empty where lines have none.
	Weights [][]performance.Number `json:"weights"`
	// Events are the newest lines, the newest first; EventsOf counts all.
	Events   []json.RawMessage `json:"events"`
	EventsOf int               `json:"events_of"`
	// Orders counts orders and targets by what they say, Rejected rejections by their reasons, of
	// which one may have several.
	Orders   map[string]int `json:"orders"`
	Rejected map[string]int `json:"rejected"`
	Fills    int            `json:"fills"`
	// Bad counts lines that were none.
	Bad int `json:"bad"`
}

const (
	mostEvents = 400
	mostEvent  = 64 << 10
	// mostSymbols is the most symbols whose positions are kept.
	mostSymbols = 512
	// mostReasons bounds what is counted by a text.
	mostReasons = 200
)

// event is a line of a log, as far as it is read.
type event struct {
	Seq       *int64             `json:"seq"`
	Time      string             `json:"time"`
	Value     *float64           `json:"value"`
	Cash      float64            `json:"cash"`
	Positions map[string]float64 `json:"positions"`
	Orders    json.RawMessage    `json:"orders"`
	Fills     []json.RawMessage  `json:"fills"`
	Rejected  json.RawMessage    `json:"rejected"`
	Weights   map[string]float64 `json:"weights"`
	// Refused are orders that a limit of a live service has left out, by symbol, Limited what it
	// has made of the whole decision, and Because which limits did.
	Refused map[string]string `json:"refused"`
	Limited string            `json:"limited"`
	Because []string          `json:"because"`
}

// reasons are those for which a live service has left out what the policy wanted.
func (e *event) reasons() []string {
	switch {
	case len(e.Because) > 0 && (len(e.Refused) > 0 || e.Orders == nil):
		return e.Because
	case len(e.Refused) > 0 && e.Limited == "":
		return []string{"price_limits"}
	}
	return nil
}

// track keeps what was traded in bounded memory.
type track struct {
	rows     []trackRow
	each     int
	symbols  []string
	peak     float64
	events   [][]byte
	n, fills int
	bad      int
	orders   map[string]int
	rejected map[string]int
	weighs   bool // there were weights
}

// trackRow is a stretch of n lines.
type trackRow struct {
	time                             string
	n                                int
	low, high, value, cash, drawdown float64
	positions                        []float64
	weights                          []float64 // nil where the line has none
}

func newTrack() *track {
	return &track{each: 1, orders: map[string]int{}, rejected: map[string]int{}}
}

var errEvent = errors.New("no line of trading: expected time and value")

// add takes a line.
func (t *track) add(text []byte) (e event, err error) {
	if err = json.Unmarshal(text, &e); err == nil && (e.Time == "" || e.Value == nil) {
		err = errEvent
	}
	if err != nil {
		t.bad++
		return e, err
	}
	for symbol := range sorted.All(e.Positions) {
		if !slices.Contains(t.symbols, symbol) && len(t.symbols) < mostSymbols {
			t.symbols = append(t.symbols, symbol)
		}
	}
	v := *e.Value
	t.peak = max(t.peak, v)
	row := trackRow{time: e.Time, n: 1, low: v, high: v, value: v, cash: e.Cash, positions: make([]float64, len(t.symbols))}
	if t.peak > 0 {
		row.drawdown = v/t.peak - 1
	}
	for i, s := range t.symbols {
		row.positions[i] = e.Positions[s]
	}
	if len(e.Weights) > 0 {
		row.weights = make([]float64, len(t.symbols))
		for i, s := range t.symbols {
			row.weights[i] = e.Weights[s]
		}
		t.weighs = true
	}
	if n := len(t.rows); n > 0 && t.rows[n-1].n < t.each {
		t.rows[n-1].add(row)
	} else {
		if n == mostRows {
			t.halve()
		}
		t.rows = append(t.rows, row)
	}
	t.fills += len(e.Fills)
	count(t.orders, words(e.Orders, "side"))
	count(t.rejected, words(e.Rejected, "reason"))
	count(t.rejected, e.reasons())
	if len(text) > mostEvent {
		text, _ = json.Marshal(map[string]any{"time": e.Time, "value": v, "cash": e.Cash, "left_out": fmt.Sprintf("the line has %d bytes", len(text))})
	}
	if len(t.events) < mostEvents {
		t.events = append(t.events, bytes.Clone(text))
	} else {
		t.events[t.n%mostEvents] = bytes.Clone(text)
	}
	t.n++
	return e, nil
}

func (r *trackRow) add(next trackRow) {
	r.n += next.n
	r.low, r.high = min(r.low, next.low), max(r.high, next.high)
	r.drawdown = min(r.drawdown, next.drawdown)
	r.value, r.cash, r.positions, r.weights = next.value, next.cash, next.positions, next.weights
}

func (t *track) halve() {
	half := t.rows[:0]
	for i := 0; i < len(t.rows); i += 2 {
		r := t.rows[i]
		if i+1 < len(t.rows) {
			r.add(t.rows[i+1])
		}
		half = append(half, r)
	}
	clear(t.rows[len(half):])
	t.rows, t.each = half, t.each*2
}

// words are what a field says that is a word for each symbol, or a list of objects with the word at
// a key.
func words(text json.RawMessage, key string) []string {
	var bySymbol map[string]json.RawMessage
	var list []map[string]json.RawMessage
	var out []string
	switch {
	case len(text) == 0:
	case json.Unmarshal(text, &bySymbol) == nil:
		for _, v := range sorted.All(bySymbol) {
			var s string
			if json.Unmarshal(v, &s) == nil {
				out = append(out, s)
			}
		}
	case json.Unmarshal(text, &list) == nil:
		for _, o := range list {
			var s string
			if json.Unmarshal(o[key], &s) == nil {
				out = append(out, s)
			}
		}
	}
	return out
}

func count(m map[string]int, words []string) {
	for _, w := range words {
		if _, ok := m[w]; !ok && len(m) >= mostReasons {
			w = "others"
		}
		m[w]++
	}
}

// data is what the page shows.
func (t *track) data(id string) *TradingData {
	d := &TradingData{
		ID: id, Symbols: append([]string{}, t.symbols...), Events: []json.RawMessage{}, EventsOf: t.n, Orders: map[string]int{}, Rejected: map[string]int{}, Fills: t.fills, Bad: t.bad,
		Times: []string{}, Low: []float64{}, High: []float64{}, Value: []float64{}, Cash: []float64{}, Drawdown: []float64{}, Positions: make([][]performance.Number, len(t.symbols)),
		Weights: [][]performance.Number{},
	}
	if t.weighs {
		d.Weights = make([][]performance.Number, len(t.symbols))
	}
	for k, n := range sorted.All(t.orders) {
		d.Orders[k] = n
	}
	for k, n := range sorted.All(t.rejected) {
		d.Rejected[k] = n
	}
	for _, r := range t.rows {
		d.Times, d.Low, d.High = append(d.Times, r.time), append(d.Low, r.low), append(d.High, r.high)
		d.Value, d.Cash, d.Drawdown = append(d.Value, r.value), append(d.Cash, r.cash), append(d.Drawdown, r.drawdown)
		for i := range t.symbols {
			v := 0.0 // Before a symbol was there nothing of it was held.
			if i < len(r.positions) {
				v = r.positions[i]
			}
			d.Positions[i] = append(d.Positions[i], performance.Number(v))
			if t.weighs {
				w := math.NaN() // It is not known.
				if i < len(r.weights) {
					w = r.weights[i]
				}
				d.Weights[i] = append(d.Weights[i], performance.Number(w))
			}
		}
	}
	for i := range t.events {
		d.Events = append(d.Events, t.events[((t.n-1-i)%len(t.events)+len(t.events))%len(t.events)])
	}
	return d
}

// Trading reads a log of trading.
func (b *Board) Trading(id string) (*TradingData, error) {
	it, err := b.item(Trading, id)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(it.path)
	if err != nil {
		return nil, fmt.Errorf("trading %s: %w", id, err)
	}
	t, f := newTrack(), follower{path: it.path}
	buffer := make([]byte, longestLine)
	if _, _, err := f.next(int(min(info.Size(), 1<<32)), buffer, func() {}, func(text []byte) {
		if len(bytes.TrimSpace(text)) > 0 {
			t.add(text) // add counts texts that are no line.
		}
	}); err != nil {
		return nil, fmt.Errorf("trading %s: %w", id, err)
	}
	return t.data(id), nil
}
