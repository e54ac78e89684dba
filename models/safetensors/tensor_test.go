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
