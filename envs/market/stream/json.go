package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// A message in JSON is one flat object,
//
//	{"v":1,"symbol":"IBM","time":"2012-12-10T00:00:00Z","open":1,"high":2,"low":1,"close":2,"volume":5}
//
// with, where they are known, factor, suspended, the columns of package bars by their names
// (raw_factor is what prices before adjustment were multiplied by), extra, an object of further
// numbers, and average, the column of extra that is amount/volume. Keys that are not known are an
// error: they would be of another schema. A tick has price, size and amount in place of those of a
// bar,
//
//	{"v":1,"symbol":"IBM","time":"2012-12-10T14:30:00.125Z","price":191.1,"size":300,"amount":57330}
//
// and in extra what is known beside, such as mid, spread and depth of the book.

// appendJSON writes what decodeJSON reads, numbers to the bit.
func appendJSON(to []byte, symbol string, rec *bars.Record, names []string, quoted []bars.QuoteColumn) []byte {
	to = beginJSON(to, symbol, rec.Time)
	number := func(name string, v float64) {
		if v-v != 0 {
			return
		}
		to = append(to, ',', '"')
		to = append(to, name...)
		to = append(to, '"', ':')
		to = strconv.AppendFloat(to, v, 'g', -1, 64)
	}
	number("open", rec.Open)
	number("high", rec.High)
	number("low", rec.Low)
	number("close", rec.Close)
	number("volume", rec.Volume)
	number("factor", rec.Factor)
	if rec.Suspended {
		to = append(to, `,"suspended":true`...)
	}
	for _, c := range quoted {
		if written(rec, c) {
			number(quoteKey(c), rec.Quote[c])
		}
	}
	if len(names) == 0 {
		return append(to, '}')
	}
	to = appendExtra(to, names, rec.Extra)
	if i := rec.Average(); i >= 0 && !math.IsNaN(rec.Extra[i]) {
		to = append(to, `,"average":`...)
		to = AppendText(to, names[i])
	}
	return append(to, '}')
}

// beginJSON begins a message.
func beginJSON(to []byte, symbol string, at time.Time) []byte {
	to = append(to, `{"v":1,"symbol":`...)
	to = AppendText(to, symbol)
	to = append(to, `,"time":"`...)
	to = at.AppendFormat(to, time.RFC3339Nano)
	return append(to, '"')
}

// appendJSONTick writes a tick.
func appendJSONTick(to []byte, symbol string, t *bars.Tick, names []string) []byte {
	to = beginJSON(to, symbol, t.Time)
	if t.Price == t.Price {
		to = strconv.AppendFloat(append(to, `,"price":`...), t.Price, 'g', -1, 64)
	}
	to = strconv.AppendFloat(append(to, `,"size":`...), t.Volume, 'g', -1, 64)
	if t.Price == t.Price {
		to = strconv.AppendFloat(append(to, `,"amount":`...), t.Amount, 'g', -1, 64)
	}
	if len(t.Extra) > 0 {
		to = appendExtra(to, names, t.Extra)
	}
	return append(to, '}')
}

// appendExtra writes further numbers, but for those that are none.
func appendExtra(to []byte, names []string, values []float64) []byte {
	to = append(to, `,"extra":{`...)
	first := true
	for i, name := range names {
		if v := values[i]; v-v == 0 {
			if !first {
				to = append(to, ',')
			}
			first = false
			to = AppendText(to, name)
			to = append(to, ':')
			to = strconv.AppendFloat(to, v, 'g', -1, 64)
		}
	}
	return append(to, '}')
}

// AppendText appends a text as JSON has it.
func AppendText[T string | []byte](to []byte, s T) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			text, _ := json.Marshal(string(s)) // Of a string there is no error.
			return append(to, text...)
		}
	}
	return append(append(append(to, '"'), s...), '"')
}

// quoteKey is the key of a column.
func quoteKey(c bars.QuoteColumn) string {
	if c == bars.Factor {
		return "raw_factor" // factor is what the message's own prices are multiplied by.
	}
	return c.String()
}

// written reports whether the column of a row belongs into its message: those before adjustment do
// where the source has adjusted, and else follow from the row.
func written(rec *bars.Record, c bars.QuoteColumn) bool {
	return c > bars.Factor || rec.Quote[bars.RawClose] > 0
}

// decodeJSON reads a message. It is a reader of this one shape, several times as fast as package
// encoding/json, whose tests compare the two.
func (m *Message) decodeJSON(text []byte) error {
	r := reader{text: text}
	err := r.object(func(key []byte) error {
		switch string(key) {
		case "v":
			v, err := r.number()
			m.version = int(v)
			if err == nil && float64(m.version) != v {
				err = fmt.Errorf("%v is no whole number", v)
			}
			return err
		case "symbol":
			s, err := r.quoted()
			m.Symbol = s
			return err
		case "time":
			s, err := r.quoted()
			if err == nil {
				m.Time, err = m.instant(s)
			}
			return err
		case "average":
			s, err := r.quoted()
			if err == nil {
				m.average = m.name(s)
			}
			return err
		case "suspended":
			return r.flag(&m.Suspended)
		case "extra":
			return r.object(func(name []byte) error {
				v, err := r.number()
				m.Names, m.values = append(m.Names, m.name(name)), append(m.values, v)
				return err
			})
		}
		to := m.field(key)
		if to == nil {
			return errors.New("the key is not known")
		}
		v, err := r.number()
		*to = v
		return err
	})
	if err == nil {
		if r.space(); r.at < len(r.text) {
			err = fmt.Errorf("there is more after the object: %q", head(r.text[r.at:]))
		}
	}
	return err
}

// field is where the number of a key belongs, nil where there is none of the name.
func (m *Message) field(key []byte) *float64 {
	switch string(key) {
	case "open":
		return &m.Open
	case "high":
		return &m.High
	case "low":
		return &m.Low
	case "close":
		return &m.Close
	case "volume":
		return &m.Volume
	case "factor":
		return &m.Factor
	case "price":
		return &m.Price
	case "size":
		return &m.Size
	}
	for c := range bars.QuoteColumns {
		if quoteKey(c) == string(key) {
			return &m.Quote[c]
		}
	}
	return nil
}

// reader reads JSON from the beginning to the end.
type reader struct {
	text []byte
	at   int
}

// space goes behind white space, of which there hardly ever is any.
func (r *reader) space() {
	for r.at < len(r.text) && r.text[r.at] <= ' ' && isSpace(r.text[r.at]) {
		r.at++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// take takes a byte.
func (r *reader) take(c byte) error {
	if !r.takes(c) {
		return fmt.Errorf("expected %q at byte %d, got %q", c, r.at, head(r.text[min(r.at, len(r.text)):]))
	}
	return nil
}

// takes takes a byte if it comes next.
func (r *reader) takes(c byte) bool {
	r.space()
	if r.at >= len(r.text) || r.text[r.at] != c {
		return false
	}
	r.at++
	return true
}

// object calls value at the value of each key. A key that is there twice is an error only where the
// value finds that it is.
func (r *reader) object(value func(key []byte) error) error {
	if err := r.take('{'); err != nil {
		return err
	}
	if r.takes('}') {
		return nil
	}
	for {
		key, err := r.quoted()
		if err == nil {
			err = r.take(':')
		}
		if err != nil {
			return err
		}
		if err := value(key); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if !r.takes(',') {
			return r.take('}')
		}
	}
}

// quoted reads a string.
func (r *reader) quoted() ([]byte, error) {
	if !r.takes('"') {
		return nil, r.take('"')
	}
	// Keys and symbols are short, and of letters that are a byte each.
	for i, c := range r.text[r.at:] {
		if c == '"' {
			s := r.text[r.at : r.at+i]
			r.at += i + 1
			return s, nil
		}
		if c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	i := bytes.IndexByte(r.text[r.at:], '"')
	if i < 0 {
		return nil, errors.New("a text has no end")
	}
	s := r.text[r.at : r.at+i]
	if bytes.IndexByte(s, '\\') < 0 {
		if !utf8.Valid(s) {
			return nil, fmt.Errorf("%q is no UTF-8", s)
		}
		r.at += i + 1
		return s, nil
	}
	// Rare: by the standard library.
	for end := r.at; end < len(r.text); end++ {
		switch r.text[end] {
		case '\\':
			end++
		case '"':
			var s string
			if err := json.Unmarshal(r.text[r.at-1:end+1], &s); err != nil {
				return nil, fmt.Errorf("%q is no text: %w", head(r.text[r.at-1:end+1]), err)
			}
			r.at = end + 1
			return []byte(s), nil
		}
	}
	return nil, errors.New("a text has no end")
}

// powers are those of ten that are exact.
var powers = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// number reads a number, or null, which is NaN.
func (r *reader) number() (float64, error) {
	r.space()
	// Most have a few digits: a whole number and a power of ten, both exact, whose quotient is
	// rounded once.
	at, text := r.at, r.text
	negative := at < len(text) && text[at] == '-'
	if negative {
		at++
	}
	whole, digits, fraction := uint64(0), 0, 0
	for ; at < len(text) && text[at]-'0' <= 9; at++ {
		whole, digits = whole*10+uint64(text[at]-'0'), digits+1
	}
	if before := digits; at < len(text) && text[at] == '.' && before > 0 {
		for at++; at < len(text) && text[at]-'0' <= 9; at++ {
			whole, digits = whole*10+uint64(text[at]-'0'), digits+1
		}
		if fraction = digits - before; fraction == 0 {
			digits = 0
		}
	}
	if digits > 0 && digits <= 15 && at < len(text) && (text[at] == ',' || text[at] == '}') {
		r.at = at
		v := float64(whole) / powers[fraction]
		if negative {
			v = -v
		}
		return v, nil
	}
	return r.anyNumber()
}

// anyNumber is number by the standard library.
func (r *reader) anyNumber() (float64, error) {
	start := r.at
	for r.at < len(r.text) {
		if c := r.text[r.at]; c == ',' || c == '}' || c == ' ' || c == '\n' || c == '\r' || c == '\t' {
			break
		}
		r.at++
	}
	word := r.text[start:r.at]
	if string(word) == "null" {
		return math.NaN(), nil
	}
	// Numbers that ParseFloat takes beyond JSON have other characters.
	for _, c := range word {
		if (c < '0' || c > '9') && c != '-' && c != '+' && c != '.' && c != 'e' && c != 'E' {
			return 0, fmt.Errorf("%q is no number", head(word))
		}
	}
	v, err := strconv.ParseFloat(unsafe.String(unsafe.SliceData(word), len(word)), 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", head(word))
	}
	return v, nil
}

func (r *reader) flag(to *bool) error {
	r.space()
	rest := r.text[r.at:]
	switch {
	case bytes.HasPrefix(rest, []byte("true")):
		*to, r.at = true, r.at+4
	case bytes.HasPrefix(rest, []byte("false")):
		*to, r.at = false, r.at+5
	default:
		return fmt.Errorf("%q is neither true nor false", head(rest))
	}
	return nil
}

// head is the beginning of a text for messages.
func head(b []byte) []byte { return b[:min(len(b), 40)] }
