package npy_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/tensor"
	"github.com/onnxrl/onnxrl/runtime/tensor/npy"
)

func TestEncodeIsReadBack(t *testing.T) {
	cases := 0
	for _, d := range []tensor.DType{tensor.Float16, tensor.Float32, tensor.Float64, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.Bool} {
		for _, shape := range [][]int{{}, {0}, {3}, {2, 3}, {4, 1, 5, 2}} {
			x := tensor.New(d, shape...)
			for i := range x.Bytes() {
				x.Bytes()[i] = byte(i % 2)
			}
			b, err := npy.Encode(x)
			if err != nil {
				t.Fatal(err)
			}
			if (len(b)-len(x.Bytes()))%64 != 0 {
				t.Errorf("%v: the data begin at byte %d", x, len(b)-len(x.Bytes()))
			}
			y, err := npy.Decode(b)
			if err != nil || y.String() != x.String() || !bytes.Equal(y.Bytes(), x.Bytes()) {
				t.Errorf("%v came back as %v, %v", x, y, err)
			}
			cases++
		}
	}
	if cases != 60 {
		t.Errorf("%d cases", cases)
	}
}

// TestEncodeIsNumPys compares with the header that numpy.save of NumPy 2 writes.
func TestEncodeIsNumPys(t *testing.T) {
	b, err := npy.Encode(tensor.Of([]int64{1, 2}, 2))
	if err != nil {
		t.Fatal(err)
	}
	want := "934e554d5059" + "0100" + "7600" + hex.EncodeToString([]byte("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }"+strings.Repeat(" ", 60)+"\n")) + "01000000000000000200000000000000"
	if got := hex.EncodeToString(b); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestEncodeRefuses(t *testing.T) {
	if _, err := npy.Encode(tensor.New(tensor.BFloat16, 2)); err == nil || !strings.Contains(err.Error(), "no such type") {
		t.Errorf("error %v", err)
	}
}
