package stream

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// randomRow is a row of any numbers that a message can have.
func randomRow(r *rng.Stream) (symbol string, rec bars.Record, names []string, quoted []bars.QuoteColumn) {
	symbol = []string{"IBM", "600000.SH", `BRK"B`, "Ä\\ö", "a\tb", "😀"}[r.IntN(6)]
	number := func() float64 {
		switch r.IntN(8) {
		case 0:
			return math.NaN()
		case 1:
			return []float64{0, 1, -1, math.MaxFloat64, math.SmallestNonzeroFloat64, 1e21, 123456789.125}[r.IntN(7)]
		}
		return math.Exp(10 * r.Normal())
	}
	rec.Time = time.Unix(int64(r.IntN(4e9)), int64(r.IntN(2)*r.IntN(1e9))).In([]*time.Location{time.UTC, time.FixedZone("", 8*3600)}[r.IntN(2)])
	rec.Open, rec.High, rec.Low, rec.Close, rec.Volume, rec.Factor = number(), number(), number(), number(), number(), number()
	rec.Suspended = r.Bernoulli(0.2)
	for c := range bars.QuoteColumns {
		if rec.Quote[c] = math.NaN(); r.Bernoulli(0.5) {
			quoted = append(quoted, c)
			rec.Quote[c] = number()
		}
	}
	if r.Bernoulli(0.5) {
		rec.Quote[bars.RawClose] = 1 + r.Float64() // Adjusted already.
	} else {
		for c := bars.RawOpen; c <= bars.Factor; c++ {
			rec.Quote[c] = math.NaN()
		}
	}
	for i := range r.IntN(4) {
		names = append(names, fmt.Sprintf("x%d", i))
		rec.Extra = append(rec.Extra, number())
	}
	if len(names) > 0 && r.Bernoulli(0.3) {
		if k := r.IntN(len(names)); rec.Extra[k] == rec.Extra[k] {
			rec.SetAverage(k)
		}
	}
	if rec.Average() < 0 {
		rec.SetAverage(-1)
	}
	return symbol, rec, names, quoted
}

// sameRow compares what was decoded with what was written, bit for bit.
func sameRow(m *Message, symbol string, rec *bars.Record, names []string, quoted []bars.QuoteColumn) error {
	same := func(what string, got, want float64) error {
		if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
			return fmt.Errorf("%s: %v, expected %v", what, got, want)
		}
		return nil
	}
	if string(m.Symbol) != symbol || !m.Time.Equal(rec.Time) || m.Suspended != rec.Suspended {
		return fmt.Errorf("%q %v %v, expected %q %v %v", m.Symbol, m.Time, m.Suspended, symbol, rec.Time, rec.Suspended)
	}
	for _, v := range []struct {
		name      string
		got, want float64
	}{{"open", m.Open, rec.Open}, {"high", m.High, rec.High}, {"low", m.Low, rec.Low}, {"close", m.Close, rec.Close}, {"volume", m.Volume, rec.Volume}, {"factor", m.Factor, rec.Factor}} {
		if err := same(v.name, v.got, v.want); err != nil {
			return err
		}
	}
	for c := range bars.QuoteColumns {
		want := rec.Quote[c]
		if !slices.Contains(quoted, c) {
			want = math.NaN()
		}
		if err := same(c.String(), m.Quote[c], want); err != nil {
			return err
		}
	}
	for i, name := range names {
		got := math.NaN()
		if k := slices.Index(m.Names, name); k >= 0 {
			got = m.Extra[k]
		}
		if err := same(name, got, rec.Extra[i]); err != nil {
			return err
		}
	}
	wanted, got := "", ""
	if k := rec.Average(); k >= 0 {
		wanted = names[k]
	}
	if k := m.Average(); k >= 0 {
		got = m.Names[k]
	}
	if wanted != got {
		return fmt.Errorf("average %q, expected %q", got, wanted)
	}
	return nil
}

func TestMessagesComeBack(t *testing.T) {
	r := rng.New(5).Stream()
	var m Message
	n := 0
	for range 20_000 {
		symbol, rec, names, quoted := randomRow(r)
		for _, e := range []Encoding{JSON, Protobuf} {
			text := e.Append(nil, symbol, &rec, names, quoted)
			if err := m.Decode(text); err != nil {
				t.Fatalf("%s: %v\n%q", e, err, text)
			}
			if err := sameRow(&m, symbol, &rec, names, quoted); err != nil {
				t.Fatalf("%s: %v\n%q", e, err, text)
			}
			n++
		}
		// The standard library reads the same.
		text := JSON.Append(nil, symbol, &rec, names, quoted)
		var o struct {
			Symbol string             `json:"symbol"`
			Time   time.Time          `json:"time"`
			Open   *float64           `json:"open"`
			Extra  map[string]float64 `json:"extra"`
		}
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if o.Symbol != symbol || !o.Time.Equal(rec.Time) || (o.Open == nil) != (rec.Open != rec.Open) || o.Open != nil && *o.Open != rec.Open {
			t.Fatalf("%+v of %s", o, text)
		}
		for name, v := range sorted.All(o.Extra) {
			if k := slices.Index(names, name); k < 0 || rec.Extra[k] != v {
				t.Fatalf("%s: %v of %s", name, v, text)
			}
		}
	}
	if n != 40_000 {
		t.Errorf("%d messages", n)
	}
}

func TestMessagesThatAreNone(t *testing.T) {
	const good = `{"v":1,"symbol":"IBM","time":"2012-12-10","close":1}`
	n := 0
	for _, x := range []struct{ text, want string }{
		{"", "decode bar: it is empty"},
		{`{}`, "decode bar: v: the schema is 0, this program knows 1"},
		{strings.Replace(good, `"v":1`, `"v":2`, 1), "decode bar: v: the schema is 2, this program knows 1"},
		{strings.Replace(good, `"v":1`, `"v":1.5`, 1), "decode bar: v: 1.5 is no whole number"},
		{strings.Replace(good, `"IBM"`, `""`, 1), "decode bar: symbol: it is missing"},
		{strings.Replace(good, `,"time":"2012-12-10"`, ``, 1), "decode bar: time: it is missing"},
		{strings.Replace(good, `2012-12-10`, `10.12.2012`, 1), `decode bar: time: time: "10.12.2012", expected a time such as 2024-01-31T09:35:00+08:00 or 2024-01-31`},
		{strings.Replace(good, `"close":1`, `"close":"1"`, 1), `decode bar: close: "\"1\"" is no number`},
		{strings.Replace(good, `"close":1`, `"close":NaN`, 1), `decode bar: close: "NaN" is no number`},
		{strings.Replace(good, `"close":1`, `"close":0x1p4`, 1), `decode bar: close: "0x1p4" is no number`},
		{strings.Replace(good, `"close"`, `"clsoe"`, 1), "decode bar: clsoe: the key is not known"},
		{good[:30], `decode bar: time: a text has no end`},
		{good + "x", `decode bar: there is more after the object: "x"`},
		{strings.Replace(good, `"close":1`, `"suspended":1`, 1), `decode bar: suspended: "1}" is neither true nor false`},
		{strings.Replace(good, `"close":1`, `"average":"vwap"`, 1), `decode bar: average: there is no column "vwap" in extra`},
		{"\x08\x01\x12\x03IB", "decode bar: field 2: unexpected EOF"},
		{"\x08\x01\xfa\x01\x00", "decode bar: field 31 of wire type 2 is not one of the schema"},
		{"\xff", "decode bar: it is neither JSON nor Protobuf: unexpected EOF"},
	} {
		var m Message
		if err := m.Decode([]byte(x.text)); err == nil || err.Error() != x.want {
			t.Errorf("%q: %v, expected %s", x.text, err, x.want)
		}
		n++
	}
	if n != 18 {
		t.Errorf("%d cases", n)
	}
}

func TestDecodeAllocatesNothing(t *testing.T) {
	rec := bars.Record{Bar: bars.Bar{Time: time.Date(2026, 1, 2, 9, 35, 0, 0, time.UTC), Open: 1.25, High: 2, Low: 1, Close: 1.5, Volume: 1e6}, Factor: 0.5, Extra: []float64{1, 2}}
	n := 0
	for _, e := range []Encoding{JSON, Protobuf} {
		text := e.Append(nil, "600000.SH", &rec, []string{"vwap", "turnover"}, nil)
		var m Message
		if got := testing.AllocsPerRun(100, func() {
			if err := m.Decode(text); err != nil {
				t.Fatal(err)
			}
			n++
		}); got != 0 {
			t.Errorf("%s: %v allocations", e, got)
		}
	}
	if n != 202 {
		t.Errorf("%d messages", n)
	}
}

// FuzzDecode: nothing ends the program, and what is read and written again is the same.
func FuzzDecode(f *testing.F) {
	r := rng.New(9).Stream()
	for range 20 {
		symbol, rec, names, quoted := randomRow(r)
		f.Add(JSON.Append(nil, symbol, &rec, names, quoted))
		f.Add(Protobuf.Append(nil, symbol, &rec, names, quoted))
	}
	// Protobuf has neither such times nor columns without a name.
	f.Add([]byte(`{"v":1,"symbol":"A","time":"0001-01-10"}`))
	f.Add([]byte(`{"v":1,"symbol":"A","time":"2000-01-10","extra":{"":0,"00":0}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m, again Message
		if m.Decode(text) != nil {
			return
		}
		for i, name := range m.Names {
			if slices.Contains(m.Names[:i], name) {
				return // The first of two columns of a name counts.
			}
		}
		if m.Quote[bars.RawClose] > 0 == false {
			for c := bars.RawOpen; c <= bars.Factor; c++ {
				m.Quote[c] = math.NaN()
			}
		}
		var all []bars.QuoteColumn
		for c := range bars.QuoteColumns {
			all = append(all, c)
		}
		if k := m.Average(); k >= 0 && !(m.Extra[k]-m.Extra[k] == 0) {
			return // A column without a number is not written, so nothing is its average.
		}
		finite := func(v *float64) {
			if *v-*v != 0 {
				*v = math.NaN() // Infinities of Protobuf are not written.
			}
		}
		for _, v := range []*float64{&m.Open, &m.High, &m.Low, &m.Close, &m.Volume, &m.Factor} {
			finite(v)
		}
		for i := range m.Quote {
			finite(&m.Quote[i])
		}
		for i := range m.Extra {
			finite(&m.Extra[i])
		}
		for _, e := range []Encoding{JSON, Protobuf} {
			out := e.Append(nil, string(m.Symbol), &m.Record, m.Names, all)
			if err := again.Decode(out); err != nil {
				t.Fatalf("%s: %v\n%q of %q", e, err, out, text)
			}
			if err := sameRow(&again, string(m.Symbol), &m.Record, m.Names, all); err != nil {
				t.Fatalf("%s: %v\n%q of %q", e, err, out, text)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	rec := bars.Record{Bar: bars.Bar{Time: time.Date(2026, 1, 2, 9, 35, 0, 0, time.UTC), Open: 78.80142385982912, High: 79.1, Low: 78.2, Close: 78.5012, Volume: 1234567}, Factor: 0.5}
	for _, e := range []Encoding{JSON, Protobuf} {
		text := e.Append(nil, "600000.SH", &rec, nil, nil)
		b.Run(string(e), func(b *testing.B) {
			b.ReportAllocs()
			var m Message
			for b.Loop() {
				if err := m.Decode(text); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "bars/s")
		})
	}
}
