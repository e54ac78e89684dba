package npy_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/tensor"
	"github.com/onnxrl/onnxrl/runtime/tensor/npy"
)

// file builds an array file as numpy.save writes it.
func file(header string, data ...byte) []byte {
	b := []byte("\x93NUMPY\x01\x00")
	pad := (64 - (10+len(header)+1)%64) % 64
	header += strings.Repeat(" ", pad) + "\n"
	b = binary.LittleEndian.AppendUint16(b, uint16(len(header)))
	return append(append(b, header...), data...)
}

func head(descr, fortran, shape string) string {
	return fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': %s, }", descr, fortran, shape)
}

func TestDecode(t *testing.T) {
	bytes := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i)
		}
		return b
	}
	tests := []struct {
		name, descr, fortran, shape string
		data                        []byte
		dtype                       tensor.DType
		want                        []int
		bytes                       []byte
	}{
		{"vector", "<f4", "False", "(3,)", bytes(12), tensor.Float32, []int{3}, bytes(12)},
		{"matrix", "<i8", "False", "(2, 3)", bytes(48), tensor.Int64, []int{2, 3}, bytes(48)},
		{"scalar", "<f8", "False", "()", bytes(8), tensor.Float64, nil, bytes(8)},
		{"empty", "<f4", "False", "(0, 3)", nil, tensor.Float32, []int{0, 3}, nil},
		{"half", "<f2", "False", "(2,)", bytes(4), tensor.Float16, []int{2}, bytes(4)},
		{"bytes", "|u1", "False", "(4,)", bytes(4), tensor.Uint8, []int{4}, bytes(4)},
		{"booleans are 0 or 1", "|b1", "False", "(4,)", bytes(4), tensor.Bool, []int{4}, []byte{0, 1, 1, 1}},
		{"column-major", "|i1", "True", "(2, 3)", bytes(6), tensor.Int8, []int{2, 3}, []byte{0, 2, 4, 1, 3, 5}},
		{"column-major, three axes", "|i1", "True", "(2, 2, 2)", bytes(8), tensor.Int8, []int{2, 2, 2}, []byte{0, 4, 2, 6, 1, 5, 3, 7}},
	}
	for _, c := range tests {
		got, err := npy.Decode(file(head(c.descr, c.fortran, c.shape), c.data...))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got.DType() != c.dtype || !slices.Equal(got.Shape(), c.want) || !slices.Equal(got.Bytes(), c.bytes) {
			t.Errorf("%s: got %v %v, expected %v%v %v", c.name, got, got.Bytes(), c.dtype, c.want, c.bytes)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	tests := []struct {
		name string
		b    []byte
		says string
	}{
		{"other file", []byte("not an array at all"), "not a NumPy array"},
		{"nothing", nil, "not a NumPy array"},
		{"version", []byte("\x93NUMPY\x09\x00\x00\x00\x00\x00"), "version 9"},
		{"truncated header", file(head("<f4", "False", "(3,)"))[:40], "truncated"},
		{"truncated data", file(head("<f4", "False", "(3,)"), 1, 2, 3), "expected 12 bytes of data, got 3"},
		{"big-endian", file(head(">f4", "False", "(1,)"), 1, 2, 3, 4), "big-endian"},
		{"objects", file(head("|O", "False", "(1,)"), 1), "not read"},
		{"structure", file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", 1, 2, 3, 4), "structured"},
		{"negative extent", file(head("<f4", "False", "(-3,)")), "extent"},
		{"huge shape", file(head("<f4", "False", "(1099511627776,)")), "bytes of data"},
		{"overflow", file(head("<f4", "False", "(4611686018427387904, 8)")), "too many elements"},
		{"no shape", file("{'descr': '<f4', 'fortran_order': False}"), `"shape" is missing`},
		{"no order", file("{'descr': '<f4', 'shape': (1,)}"), `"fortran_order" is missing`},
		{"no value", file("{'fortran_order': False, 'shape': (1,), 'descr':"), `"descr" has no value`},
	}
	for _, c := range tests {
		if got, err := npy.Decode(c.b); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, %v; expected an error with %q", c.name, got, err, c.says)
		}
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.npy")
	if err := os.WriteFile(path, file(head("<f4", "False", "(1,)"), 0, 0, 128, 63), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := npy.ReadFile(path)
	if err != nil || got.Float32s()[0] != 1 {
		t.Fatalf("got %v, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, path + "-absent"} {
		if _, err := npy.ReadFile(p); err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("got %v, expected an error naming %s", err, p)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(file(head("<f4", "False", "(2, 1)"), make([]byte, 8)...))
	f.Add(file(head("|b1", "True", "(2, 3)"), make([]byte, 6)...))
	f.Add(file(head("<f4", "False", "(4611686018427387904,)")))
	f.Fuzz(func(t *testing.T, b []byte) {
		if x, err := npy.Decode(b); err == nil && len(x.Bytes()) > len(b) {
			t.Errorf("%v from %d bytes", x, len(b))
		}
	})
}
