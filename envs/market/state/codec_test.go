package state

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// fields are one of each, moved twice.
type fields struct {
	x     float64
	list  []float64
	small []float32
	n     int
	big   int64
	flag  bool
}

func (f *fields) move(c *Codec) {
	for range 2 {
		c.Float(&f.x)
		c.Floats(f.list)
		c.Float32s(f.small)
		c.Int(&f.n, 0, 9)
		c.Int64(&f.big, math.MinInt64, math.MaxInt64)
		c.Bool(&f.flag)
	}
}

func TestRoundTrip(t *testing.T) {
	nan := math.Float64frombits(0x7ff8dead0000beef)
	f := fields{x: nan, list: []float64{math.Inf(-1), 5e-324, math.Copysign(0, -1)}, small: []float32{1.5, float32(math.NaN())}, n: 9, big: -7, flag: true}
	w := Writer([]byte("head"))
	f.move(w)
	block := w.Bytes()
	if w.Reading() || w.Err() != nil || string(block[:4]) != "head" {
		t.Fatalf("wrote %q, error %v", block[:4], w.Err())
	}
	g := fields{list: make([]float64, 3), small: make([]float32, 2)}
	r := Reader(block[4:])
	g.move(r)
	if r.Err() != nil || len(r.Bytes()) != 0 || !r.Reading() {
		t.Fatalf("error %v, %d bytes are left", r.Err(), len(r.Bytes()))
	}
	again := Writer(nil)
	g.move(again)
	if string(again.Bytes()) != string(block[4:]) {
		t.Error("what was read is written differently")
	}
	if math.Float64bits(g.x) != math.Float64bits(nan) || g.n != 9 || g.big != -7 || !g.flag || !math.Signbit(g.list[2]) {
		t.Errorf("read %+v", g)
	}
}

func TestFaults(t *testing.T) {
	f := fields{list: make([]float64, 1), small: make([]float32, 1), n: 4}
	w := Writer(nil)
	f.move(w)
	whole := w.Bytes()
	for cut := range whole {
		r := Reader(whole[:cut])
		g := fields{list: make([]float64, 1), small: make([]float32, 1)}
		g.move(r)
		if r.Err() == nil || !strings.Contains(r.Err().Error(), "are left where") {
			t.Fatalf("%d of %d bytes: error %v", cut, len(whole), r.Err())
		}
	}
	edit := func(at int, b byte) []byte {
		out := append([]byte(nil), whole...)
		out[at] = b
		return out
	}
	n := 0
	for want, block := range sorted.All(map[string][]byte{
		"the integer 10 is not between 0 and 9": edit(8+8+4, 10),
		"the flag 2 is neither 0 nor 1":         edit(8+8+4+8+8, 2),
	}) {
		n++
		r := Reader(block)
		g := fields{list: make([]float64, 1), small: make([]float32, 1), n: 3}
		g.move(r)
		if r.Err() == nil || r.Err().Error() != want {
			t.Errorf("error %v, expected %q", r.Err(), want)
		}
		first := r.Err()
		if r.Fail(errOther); r.Err() != first {
			t.Error("a later fault hides the first one")
		}
		if strings.HasPrefix(want, "the integer") && g.n != 3 {
			t.Errorf("a refused integer was taken: %d", g.n)
		}
	}
	if n != 2 || len(whole) != 74 {
		t.Errorf("%d cases, %d bytes", n, len(whole))
	}
}

var errOther = errors.New("other")
