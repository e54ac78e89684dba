package dataset

import (
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// bigTable makes blocks of numbers when they are read and measures, at each read, what is still
// reachable from earlier ones.
type bigTable struct {
	blocks []int
	reads  int
	peak   uint64
}

const wideWidth = 64

func (b *bigTable) Columns() []Column { return []Column{{Name: "x", Width: wideWidth}} }
func (b *bigTable) Blocks() []int     { return b.blocks }
func (b *bigTable) Name() string      { return "big" }
func (b *bigTable) Close() error      { return nil }

func (b *bigTable) Read(block int, columns []int) ([][]float64, error) {
	b.reads++
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	b.peak = max(b.peak, m.HeapAlloc)
	col := make([]float64, b.blocks[block]*wideWidth)
	for i := range col {
		col[i] = float64(block*b.blocks[0] + i/wideWidth)
	}
	return [][]float64{col}, nil
}

// TestNoMoreThanTheWindowIsInMemory walks a table of 64 MiB through windows of 4 MiB.
func TestNoMoreThanTheWindowIsInMemory(t *testing.T) {
	longtest.Slow(t)
	const blocks, perBlock, window = 128, 2048, 8 * 2048
	table := &bigTable{}
	for range blocks {
		table.blocks = append(table.blocks, perBlock)
	}
	m, err := Map(table, []Field{{Name: "x", Columns: []string{"x"}, DType: tensor.Float32, Shape: []int{wideWidth}}}, Fail)
	if err != nil {
		t.Fatal(err)
	}
	const rowBytes = 4 * wideWidth
	for _, c := range []struct {
		shuffle bool
		// held is what may be in memory when a block is read: the rest of the window and its queue
		// of rows.
		held uint64
	}{{true, window * (rowBytes + 16)}, {false, perBlock * (rowBytes + 16)}} {
		l, err := NewLoader(m, LoaderOptions{Shuffle: c.shuffle, Window: window})
		if err != nil {
			t.Fatal(err)
		}
		dst := []*tensor.Tensor{tensor.New(tensor.Float32, 1000, wideWidth)}
		table.reads, table.peak = 0, 0
		runtime.GC()
		var before runtime.MemStats
		runtime.ReadMemStats(&before)
		rows, seen := 0, make([]bool, blocks*perBlock)
		for {
			n, err := l.Next(1000, dst)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			rows += n
			for r := range n {
				seen[int(dst[0].Float32s()[r*wideWidth])] = true
			}
		}
		for r, ok := range seen {
			if !ok {
				t.Fatalf("row %d is missing", r)
			}
		}
		if rows != blocks*perBlock || table.reads != blocks {
			t.Errorf("%d rows in %d reads, want %d in %d", rows, table.reads, blocks*perBlock, blocks)
		}
		const slack = 1 << 20
		if held := table.peak - min(table.peak, before.HeapAlloc); held > c.held+slack {
			t.Errorf("shuffle %v: %d KiB are in memory while a block is read, the window is %d KiB", c.shuffle, held>>10, c.held>>10)
		}
	}
}

// TestTablesThatFitAreReadOnce: epochs, parts and positions share what was read.
func TestTablesThatFitAreReadOnce(t *testing.T) {
	table := &bigTable{blocks: []int{10, 10, 10}}
	m, err := Map(table, []Field{{Name: "x", Columns: []string{"x"}, DType: tensor.Float32}}, Drop)
	if err != nil {
		t.Fatal(err)
	}
	dst := []*tensor.Tensor{tensor.New(tensor.Float32, 30, wideWidth)}
	for _, part := range []Part{Train, Validation} {
		l, err := NewLoader(m, LoaderOptions{Shuffle: true, Window: 30, Part: part, Split: Split{Fraction: 0.5}})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			for l.Left() > 0 {
				if _, err := l.Next(7, dst); err != nil {
					t.Fatal(err)
				}
			}
			l.NextEpoch()
		}
	}
	if table.reads != 3 {
		t.Errorf("%d reads of 3 blocks", table.reads)
	}
	l, err := NewLoader(m, LoaderOptions{Window: 30, Shuffle: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Next(1, dst); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() {
		if _, err := l.Next(1, dst); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%g allocations per call", n)
	}
	if _, err := l.Next(1, []*tensor.Tensor{tensor.New(tensor.Float32, 1, 3)}); err == nil {
		t.Error("a tensor of another width was filled")
	}
	if _, err := l.Next(1, []*tensor.Tensor{tensor.New(tensor.Int64, 1, wideWidth)}); err == nil {
		t.Error("a tensor of another type was filled")
	}
}
