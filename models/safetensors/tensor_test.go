package safetensors

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Host tensors of every element type that the format has come back as they were.
func TestHostTensors(t *testing.T) {
	var list []Tensor
	var hosts []*tensor.Tensor
	for i, d := range dtypes {
		h := tensor.New(d.host, 2, 3)
		for k := range h.Bytes() {
			h.Bytes()[k] = byte((i + k) % 2)
		}
		s, err := Of(d.host.String(), h)
		if err != nil {
			t.Fatal(err)
		}
		if s.DType != d.file || d.file.Size() != d.host.Size() {
			t.Errorf("%v is %s", d.host, s.DType)
		}
		list, hosts = append(list, s), append(hosts, h)
	}
	var b bytes.Buffer
	if err := Write(&b, nil, list); err != nil {
		t.Fatal(err)
	}
	f, err := NewFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range hosts {
		got, err := f.Tensor(h.DType().String())
		if err != nil || got.DType() != h.DType() || !slices.Equal(got.Shape(), h.Shape()) || !bytes.Equal(got.Bytes(), h.Bytes()) {
			t.Errorf("%v came back as %v, %v", h, got, err)
		}
	}
	if len(hosts) != 15 {
		t.Errorf("%d element types", len(hosts))
	}
	if _, err := f.Tensor("none"); err == nil || !strings.Contains(err.Error(), `read array "none"`) {
		t.Errorf("error %v", err)
	}
	for _, h := range []*tensor.Tensor{tensor.OfStrings([]string{"a"}, 1), tensor.New(tensor.Complex64, 1), tensor.New(tensor.Uint4, 2)} {
		if _, err := Of("x", h); err == nil || !strings.Contains(err.Error(), "has no") {
			t.Errorf("%v: error %v", h, err)
		}
	}
}

// TestSource writes tensors whose bytes are asked for one after the other, from one buffer, and
// refuses one that gives another number of them than its shape says.
func TestSource(t *testing.T) {
	var buffer [4]byte
	lazy := func(name string, x byte, n int) Tensor {
		return Tensor{Name: name, DType: U8, Shape: []int{4}, Source: func() []byte {
			for i := range buffer {
				buffer[i] = x
			}
			return buffer[:n]
		}}
	}
	of := func(name string, x byte) Tensor { return New(name, []int{4}, []byte{x, x, x, x}) }
	var got, want bytes.Buffer
	for _, err := range []error{Write(&got, nil, []Tensor{lazy("a", 1, 4), of("b", 2), lazy("c", 3, 4)}), Write(&want, nil, []Tensor{of("a", 1), of("b", 2), of("c", 3)})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) {
		t.Errorf("%q, want %q", got.Bytes(), want.Bytes())
	}
	if err := Write(&got, nil, []Tensor{lazy("a", 1, 3)}); err == nil || !strings.Contains(err.Error(), `tensor "a": its source gives 3 bytes, but shape [4] of U8 takes 4`) {
		t.Errorf("too few bytes: %v", err)
	}
}
