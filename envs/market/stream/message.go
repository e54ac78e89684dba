package stream

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// Version is that of the messages' schema. Messages of other versions are refused.
const Version = 1

// Message is the row of one symbol at one time, before it is cleaned, or a tick.
type Message struct {
	// Symbol shares the memory of what was decoded, until the next one is.
	Symbol []byte
	// Record has the row. Its time is in UTC, as which times without a zone are read; File and Line
	// are empty.
	bars.Record
	// Names are those of Extra, in order.
	Names []string
	// Price and Size are those of a tick, whose other prices, volume and factor are not there. A
	// tick without a price says that the time has come and nothing was traded. Of a row both are
	// NaN.
	Price, Size float64

	values []float64 // of Extra, kept from message to message
	decoder
}

// Encoding is how messages are written; both are read.
type Encoding string

// The encodings.
const (
	JSON     Encoding = "json"
	Protobuf Encoding = "protobuf"
)

// Append appends the message of a row. names are those of rec.Extra; of the quote those columns are
// written that quoted lists and that are numbers.
func (e Encoding) Append(to []byte, symbol string, rec *bars.Record, names []string, quoted []bars.QuoteColumn) []byte {
	if e == Protobuf {
		return appendProto(to, symbol, rec, names, quoted)
	}
	return appendJSON(to, symbol, rec, names, quoted)
}

// AppendTick appends the message of a tick. names are those of t.Extra.
func (e Encoding) AppendTick(to []byte, symbol string, t *bars.Tick, names []string) []byte {
	if e == Protobuf {
		return appendProtoTick(to, symbol, t, names)
	}
	return appendJSONTick(to, symbol, t, names)
}

// Decode reads a message of either encoding into m, whose memory it uses again: after the first
// message it allocates nothing but what names it has not seen. The error says which field is wrong.
func (m *Message) Decode(value []byte) error {
	m.reset()
	var err error
	switch {
	case len(value) == 0:
		err = errors.New("it is empty")
	case value[0] == '{':
		err = m.decodeJSON(value)
	default:
		err = m.decodeProto(value)
	}
	if err == nil {
		err = m.check()
	}
	if err != nil {
		return fmt.Errorf("decode bar: %w", err)
	}
	m.Extra = m.values
	return nil
}

// reset makes all numbers unknown.
func (m *Message) reset() {
	nan := math.NaN()
	m.Symbol, m.Names, m.values = nil, m.Names[:0], m.values[:0]
	m.Record = bars.Record{Bar: bars.Bar{Open: nan, High: nan, Low: nan, Close: nan, Volume: nan}, Factor: nan}
	for i := range m.Quote {
		m.Quote[i] = nan
	}
	m.Price, m.Size = nan, nan
	m.version, m.average = 0, ""
}

// IsTick reports whether the message is a tick and not a row.
func (m *Message) IsTick() bool { return m.Price == m.Price || m.Size == m.Size }

// checkTick is of what every tick must have.
func (m *Message) checkTick() error {
	switch {
	case m.Open == m.Open, m.High == m.High, m.Low == m.Low, m.Close == m.Close, m.Volume == m.Volume, m.Factor == m.Factor, m.Suspended:
		return errors.New("price: a tick has price, size, amount and extra, and nothing of a bar")
	case m.Size < 0 || math.IsInf(m.Size, 0):
		return fmt.Errorf("size: it is %v", m.Size)
	case m.Quote[bars.Amount] < 0 || math.IsInf(m.Quote[bars.Amount], 0):
		return fmt.Errorf("amount: it is %v", m.Quote[bars.Amount])
	case m.Price != m.Price && m.Size > 0:
		return errors.New("price: it is missing")
	case m.Price <= 0 || math.IsInf(m.Price, 0):
		return fmt.Errorf("price: it is %v", m.Price)
	}
	return nil
}

// firstYear and lastYear are those that are whole in nanoseconds since 1970, as Protobuf has times.
const firstYear, lastYear = 1678, 2261

// check is of what every message must have.
func (m *Message) check() error {
	switch {
	case m.version != Version:
		return fmt.Errorf("v: the schema is %d, this program knows %d", m.version, Version)
	case len(m.Symbol) == 0:
		return errors.New("symbol: it is missing")
	case m.Time.IsZero():
		return errors.New("time: it is missing")
	case m.Time.Year() < firstYear || m.Time.Year() > lastYear:
		return fmt.Errorf("time: the year %d is not one of %d to %d", m.Time.Year(), firstYear, lastYear)
	}
	for _, name := range m.Names {
		if name == "" {
			return errors.New("extra: a column has no name")
		}
	}
	if m.IsTick() {
		return m.checkTick()
	}
	if m.average != "" {
		for i, name := range m.Names {
			if name == m.average {
				m.SetAverage(i)
				return nil
			}
		}
		return fmt.Errorf("average: there is no column %q in extra", m.average)
	}
	return nil
}

// decoder is what a message remembers of its reading.
type decoder struct {
	version int
	average string
	known   map[string]string // names, so that each is allocated once
	// clock is the text of the last time, which the next messages have as well.
	clock []byte
	at    time.Time
}

// instant reads a time.
func (d *decoder) instant(text []byte) (time.Time, error) {
	if len(text) > 0 && bytes.Equal(text, d.clock) {
		return d.at, nil
	}
	at, err := instant(text)
	if err == nil {
		d.clock, d.at = append(d.clock[:0], text...), at
	}
	return at, err
}

// name returns a string of b, the same one each time.
func (d *decoder) name(b []byte) string {
	if s, ok := d.known[string(b)]; ok {
		return s
	}
	if d.known == nil || len(d.known) > 1000 {
		d.known = map[string]string{}
	}
	s := string(b)
	d.known[s] = s
	return s
}

// instant reads a time of RFC 3339, or one without a zone, which is as if of UTC.
func instant(text []byte) (time.Time, error) {
	for _, layout := range [...]string{time.RFC3339Nano, "2006-01-02T15:04:05", time.DateTime, time.DateOnly} {
		if len(text) >= len(time.DateOnly) && layoutFits(layout, text) {
			t, err := time.Parse(layout, string(text))
			if err == nil {
				return t.UTC(), nil
			}
		}
	}
	return time.Time{}, fmt.Errorf("time: %q, expected a time such as 2024-01-31T09:35:00+08:00 or 2024-01-31", text)
}

// layoutFits tells layouts apart by their length, so that errors need not be made.
func layoutFits(layout string, text []byte) bool {
	switch layout {
	case time.RFC3339Nano:
		return len(text) >= len("2006-01-02T15:04:05Z") && text[10] == 'T' && len(text) != len("2006-01-02T15:04:05")
	default:
		return len(text) == len(layout)
	}
}
