package onnx

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// External data is read from a source that has no folder, with the checks that files get.
func TestExternalDataFromASource(t *testing.T) {
	dir := t.TempDir()
	b := NewBuilder("g", 18)
	w := tensor.Of([]float32{1, 2, 3, 4}, 4)
	b.Output(b.Rename(b.Op("Add", []Value{b.Initializer("a", w), b.Initializer("b", w)}), "y"), TypeOf(tensor.Float32, 4))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "m.onnx")
	if err := Save(path, m, SaveOptions{ExternalThreshold: 1, ExternalFile: "w.bin"}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "w.bin"))
	if err != nil {
		t.Fatal(err)
	}
	gone := errors.New("gone")
	cases := []struct {
		data []byte
		err  error
		says string
	}{{data, nil, ""}, {data[:8], nil, "bytes [0, 16) are asked for, it has 8"}, {make([]byte, len(data)), nil, "checksum"}, {nil, gone, "gone"}}
	for _, c := range cases {
		got, err := Unmarshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if list, err := got.ExternalLocations(); err != nil || !slices.Equal(list, []string{"w.bin"}) {
			t.Errorf("locations %v, %v", list, err)
		}
		err = got.ResolveExternalFrom(func(location string) (io.ReaderAt, int64, error) {
			if location != "w.bin" {
				t.Errorf("location %q", location)
			}
			return bytes.NewReader(c.data), int64(len(c.data)), c.err
		})
		if c.says != "" {
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), `tensor "a"`) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			continue
		}
		x, xerr := TensorOf(got.Graph.FindInitializer("b"))
		if err != nil || xerr != nil || !slices.Equal(x.Float32s(), w.Float32s()) {
			t.Errorf("%v, %v, %v", x, err, xerr)
		}
		if list, err := got.ExternalLocations(); err != nil || len(list) != 0 {
			t.Errorf("locations left %v, %v", list, err)
		}
	}
	if len(cases) != 4 {
		t.Errorf("%d cases", len(cases))
	}
}
