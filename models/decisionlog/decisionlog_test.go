package decisionlog

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var layout = &Layout{
	Obs:    []Column{{"x", tensor.Float32, 2, true}, {"mask", tensor.Uint8, 3, true}, {"n", tensor.Int64, 1, false}, {"d", tensor.Float64, 1, false}, {"i", tensor.Int32, 1, true}},
	Action: Column{actionColumn, tensor.Int64, 1, false},
}

// sample is row i.
func sample(i int) Row {
	b := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(i)))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(0.1))
	b = append(b, 1, 0, byte(i))
	b = binary.LittleEndian.AppendUint64(b, uint64(i*7))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(-0.5))
	b = binary.LittleEndian.AppendUint32(b, 9)
	b = binary.LittleEndian.AppendUint64(b, uint64(i%3))
	return Row{
		Time: 1_700_000_000_000_000 + int64(i), Request: fmt.Sprint("r", i), Row: int32(i % 2), Version: "3", Digest: "sha256:ab", Sequence: strings.Repeat("s", i%2), Start: i%4 == 0, End: i%5 == 0,
		Data: b, LogProb: -float64(i), Reward: 0.25, Terminated: i%6 == 0, Truncated: i%7 == 0,
	}
}

// TestRoundTrip: rows come back bit by bit and in their order, over files that rotate by number and
// by layout, of a model whose name is no name of a file; files that are not published are not seen.
func TestRoundTrip(t *testing.T) {
	dir, model := t.TempDir(), "a/b *c"
	if list, err := Models(dir); err != nil || list != nil {
		t.Fatal(list, err)
	}
	w, err := NewWriter(dir, model)
	if err != nil {
		t.Fatal(err)
	}
	const n = maxRows + 10
	for i := range n {
		r := sample(i)
		if err := w.Add(layout, &r); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := Files(dir, model); err != nil || len(files) != 1 || w.Rows() != 10 {
		t.Fatal(files, w.Rows(), err)
	}
	other := &Layout{Obs: layout.Obs[:1], Action: layout.Action}
	r := sample(n)
	r.Data = append(slices.Clone(r.Data[:8]), r.Data[len(r.Data)-8:]...)
	if err := w.Add(other, &r); err != nil {
		t.Fatal(err)
	}
	if err := w.Publish(); err != nil {
		t.Fatal(err)
	}
	if list, err := Models(dir); err != nil || !slices.Equal(list, []string{model}) {
		t.Fatal(list, err)
	}
	k := 0
	err = Read(t.Context(), dir, model, func(l *Layout, got *Row) error {
		want, of := sample(k), layout
		if k == n {
			want, of = r, other
		}
		if fmt.Sprint(*got) != fmt.Sprint(want) || !l.Equal(of) {
			return fmt.Errorf("row %d is %v, %+v, expected %v, %+v", k, *got, l, want, of)
		}
		k++
		return nil
	})
	if err != nil || k != n+1 {
		t.Fatal(k, err)
	}
	files, err := Files(dir, model)
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	b, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[1], b[:len(b)/2], 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Read(t.Context(), dir, model, func(*Layout, *Row) error { return nil }); err == nil || !strings.Contains(err.Error(), filepath.Base(files[1])) {
		t.Error(err)
	}
}
