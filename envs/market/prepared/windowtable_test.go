package prepared

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestWindowTable compares every row with the set and with targets computed from the prices, and
// counts the rows that must be there.
func TestWindowTable(t *testing.T) {
	s := mustBuild(t, config(t, csvText(1)))
	m := &s.Manifest
	for _, r := range m.Split.Named() {
		var out bytes.Buffer
		rows, err := s.WriteWindows(&out, WindowOptions{Range: r.Name, Horizon: 3, Stride: 2})
		if err != nil {
			t.Fatal(err)
		}
		table, err := pqarrow.ReadTable(t.Context(), bytes.NewReader(out.Bytes()), parquet.NewReaderProperties(memory.DefaultAllocator), pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
		if err != nil {
			t.Fatal(err)
		}
		defer table.Release()
		read := array.NewTableReader(table, -1)
		defer read.Release()
		at := 0
		want := func(from int) (bar, asset int) {
			for i := from; i < m.T*m.N; i++ {
				bar, asset = i/m.N, i%m.N
				if bar < max(r.Lo, m.W-1) || (bar-max(r.Lo, m.W-1))%2 != 0 || bar+3 >= r.Hi {
					continue
				}
				ok := true
				for k := bar - m.W + 1; k <= bar; k++ {
					ok = ok && s.Defined[k*m.N+asset]
				}
				for k := bar; k <= bar+3; k++ {
					ok = ok && s.Tradable(k, asset)
				}
				if ok {
					return bar, asset
				}
			}
			return -1, -1
		}
		seen := 0
		for read.Next() {
			rec := read.Record()
			times, symbols := rec.Column(0).(*array.Timestamp), rec.Column(1).(*array.String)
			windows, vol, ret := rec.Column(2).(*array.List), rec.Column(3).(*array.Float32), rec.Column(4).(*array.Float32)
			values := windows.ListValues().(*array.Float32)
			returns := rec.Column(5).(*array.List)
			for i := range int(rec.NumRows()) {
				bar, asset := want(at)
				at = bar*m.N + asset + 1
				if bar < 0 || times.Value(i) != arrow.Timestamp(s.Times[bar].UnixMicro()) || symbols.Value(i) != m.Symbols[asset] {
					t.Fatalf("%s: row %d is %s, expected bar %d of asset %d", r.Name, i, symbols.Value(i), bar, asset)
				}
				lo, hi := windows.ValueOffsets(i)
				if hi-lo != int64(m.W*m.F) {
					t.Fatalf("%s: a window of %d values", r.Name, hi-lo)
				}
				for k := range m.W * m.F {
					x := s.X.Float32s()[((bar-m.W+1+k/m.F)*m.N+asset)*m.F+k%m.F]
					if values.Value(int(lo)+k) != x {
						t.Fatalf("%s: row %d, value %d: %g, expected %g", r.Name, i, k, values.Value(int(lo)+k), x)
					}
				}
				sum := math.Log(s.Close[(bar+3)*m.N+asset] / s.Close[bar*m.N+asset])
				squares := 0.0
				first, last := returns.ValueOffsets(i)
				if last-first != 3 {
					t.Fatalf("%s: %d returns, expected 3", r.Name, last-first)
				}
				for k := 1; k <= 3; k++ {
					next := math.Log(s.Close[(bar+k)*m.N+asset] / s.Close[(bar+k-1)*m.N+asset])
					if got := returns.ListValues().(*array.Float32).Value(int(first) + k - 1); math.Abs(float64(got)-next) > 1e-7 {
						t.Errorf("%s: row %d, return %d is %g, expected %g", r.Name, i, k, got, next)
					}
					squares += next * next
				}
				if math.Abs(float64(ret.Value(i))-sum) > 1e-6 || math.Abs(float64(vol.Value(i))-math.Log(math.Sqrt(squares/3))) > 1e-5 {
					t.Errorf("%s: row %d: targets %g and %g, expected %g and %g", r.Name, i, vol.Value(i), ret.Value(i), math.Log(math.Sqrt(squares/3)), sum)
				}
				seen++
			}
		}
		if bar, _ := want(at); bar >= 0 || seen != rows || rows < 40 {
			t.Errorf("%s: %d rows, %d read, the next is bar %d", r.Name, rows, seen, bar)
		}
	}
}

type failing struct{ after int }

var errFull = errors.New("disk full")

func (f *failing) Write(b []byte) (int, error) {
	if f.after -= len(b); f.after < 0 {
		return 0, errFull
	}
	return len(b), nil
}

func TestWindowTableRefuses(t *testing.T) {
	s := mustBuild(t, config(t, csvText(1)))
	for want, o := range sorted.All(map[string]WindowOptions{
		`no range "later", only ["train" "valid" "test"]`:  {Range: "later", Horizon: 5, Stride: 1},
		"horizon 1 and stride 1":                           {Range: "train", Horizon: 1, Stride: 1},
		"horizon 5 and stride 0":                           {Range: "train", Horizon: 5},
		"no asset has a window of 10 defined bars and 500": {Range: "train", Horizon: 500, Stride: 1},
	}) {
		if _, err := s.WriteWindows(&bytes.Buffer{}, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
	for _, after := range []int{0, 100, 10_000} {
		if _, err := s.WriteWindows(&failing{after}, WindowOptions{Range: "train", Horizon: 5, Stride: 1}); !errors.Is(err, errFull) {
			t.Errorf("a disk that is full after %d bytes: error %v", after, err)
		}
	}
}
