package prepared

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// heldRows is how many rows of bars are held in memory at once while a set is prepared, beside those
// of the symbol that is looked at; the others are in a temporary file.
var heldRows = 1 << 17

// Written says what [Write] has done.
type Written struct {
	Manifest Manifest
	// Notes say what became of the cache; there are none without one.
	Notes []string
	// Held is the most rows of bars that were in memory at once.
	Held int
}

// Write prepares a set and writes it into a folder as [Make] and [Set.Save] do, without ever having it
// in memory: its values, but for two bytes for each bar, are in a temporary file until they are written.
// With a cache it is in memory, as the entry is.
func Write(ctx context.Context, c Config, dir string) (w Written, err error) {
	var s *Set
	if c.Cache != "" {
		s, w.Notes, err = Make(ctx, c)
	} else {
		s, w.Held, err = makeAway(c)
	}
	if err != nil {
		return w, err
	}
	err = errors.Join(s.Save(dir), s.away.close())
	w.Manifest = s.Manifest
	return w, err
}

// makeAway prepares a set whose values are in a file.
func makeAway(c Config) (s *Set, held int, err error) {
	data, err := examined(c, readAway, nil)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	s, held, err = build(c, data, true)
	return s, max(held, data.Held()), err
}

func readAway(s bars.Source, symbols []string) (*bars.Data, error) {
	return bars.ReadAway(s, symbols, heldRows)
}

// valueFile has the values of a set, symbol after symbol, with the rows of all times of each: features,
// prices and volume, quotes, and extra columns.
type valueFile struct {
	f             *os.File
	times, assets int
	features      int
	quotes        []bars.QuoteColumn
	extra         int
	block         *Set // times from at on, which were read last
	at, end       int
	buf           []byte
}

func newValueFile(s *Set, extra int) (*valueFile, error) {
	f, err := os.CreateTemp("", "onnxrl-set-")
	if err != nil {
		return nil, fmt.Errorf("there is no room for the set: %w", err)
	}
	_ = os.Remove(f.Name()) // Where the system lets open files go; close does it elsewhere.
	m := &s.Manifest
	v := &valueFile{f: f, times: m.T, assets: m.N, features: m.F, extra: extra}
	for _, name := range m.Quotes {
		if c, ok := bars.QuoteNamed(name); ok {
			v.quotes = append(v.quotes, c)
		}
	}
	return v, nil
}

func (v *valueFile) close() error {
	if v == nil {
		return nil
	}
	_ = os.Remove(v.f.Name()) // It is gone already where the system lets open files go.
	return v.f.Close()
}

// row is the size of one, in bytes.
func (v *valueFile) row() int { return 4*v.features + 8*(5+len(v.quotes)+v.extra) }

// put writes the values of a symbol, which a set of one symbol has.
func (v *valueFile) put(n int, s *Set) error {
	le := binary.LittleEndian
	b := v.buf[:0]
	number := func(x float64) { b = le.AppendUint64(b, math.Float64bits(x)) }
	for t := range v.times {
		for _, x := range s.x[t*v.features : (t+1)*v.features] {
			b = le.AppendUint32(b, math.Float32bits(x))
		}
		for _, x := range [...]float64{s.Open[t], s.High[t], s.Low[t], s.Close[t], s.Volume[t]} {
			number(x)
		}
		for _, c := range v.quotes {
			number(s.Quotes[c][t])
		}
		for _, x := range s.Extra[t*v.extra : (t+1)*v.extra] {
			number(x)
		}
	}
	v.buf = b
	if _, err := v.f.WriteAt(b, int64(n)*int64(v.times)*int64(v.row())); err != nil {
		return fmt.Errorf("keep the values of a symbol: %w", err)
	}
	return nil
}

// load gives a set with the values of the times from at to end, not included, of all symbols.
func (v *valueFile) load(s *Set, at, end int) (*Set, error) {
	if v.block != nil && v.at == at && v.end == end {
		return v.block, nil
	}
	le, n, size := binary.LittleEndian, v.assets, v.row()
	o := &Set{}
	o.Manifest.Quotes = s.Manifest.Quotes
	o.alloc(end-at, n, v.features, v.extra)
	b := make([]byte, (end-at)*size)
	for sym := range n {
		if _, err := v.f.ReadAt(b, (int64(sym)*int64(v.times)+int64(at))*int64(size)); err != nil {
			return nil, fmt.Errorf("read the values of a symbol: %w", err)
		}
		rest := b
		number := func() float64 {
			x := math.Float64frombits(le.Uint64(rest))
			rest = rest[8:]
			return x
		}
		for t := range end - at {
			i := t*n + sym
			for c := range v.features {
				o.x[i*v.features+c] = math.Float32frombits(le.Uint32(rest[4*c:]))
			}
			rest = rest[4*v.features:]
			for _, to := range [...][]float64{o.Open, o.High, o.Low, o.Close, o.Volume} {
				to[i] = number()
			}
			for _, c := range v.quotes {
				o.Quotes[c][i] = number()
			}
			for c := range v.extra {
				o.Extra[i*v.extra+c] = number()
			}
		}
	}
	v.block, v.at, v.end = o, at, end
	return o, nil
}

// part gives a set that has the values of the rows from lo to hi, not included, at a position that is
// less by shift.
func (s *Set) part(lo, hi int) (o *Set, shift int, err error) {
	if s.away == nil {
		return s, 0, nil
	}
	n := s.Manifest.N
	o, err = s.away.load(s, lo/n, (hi-1)/n+1)
	return o, lo / n * n, err
}
