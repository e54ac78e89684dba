package npy

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Encode returns t as an array file of version 1: little-endian, in C order, the data aligned to 64
// bytes as NumPy writes it. Texts, and types that NumPy does not have, are errors.
func Encode(t *tensor.Tensor) ([]byte, error) {
	descr := ""
	for name, d := range dtypes {
		if d == t.DType() {
			descr = "<" + name
		}
	}
	if descr == "" {
		return nil, fmt.Errorf("array of %v: NumPy has no such type", t)
	}
	if t.DType().Size() == 1 {
		descr = "|" + descr[1:]
	}
	extents := make([]string, t.Rank())
	for i, n := range t.Shape() {
		extents[i] = strconv.Itoa(n)
	}
	shape := strings.Join(extents, ", ")
	if t.Rank() == 1 {
		shape += ","
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape)
	const preamble, align = len(magic) + 4, 64
	pad := (align - (preamble+len(head)+1)%align) % align
	size := len(head) + pad + 1
	if size > math.MaxUint16 {
		return nil, fmt.Errorf("array of %d axes: the header takes %d bytes", t.Rank(), size)
	}
	b := make([]byte, 0, preamble+size+len(t.Bytes()))
	b = append(b, magic...)
	b = append(b, 1, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(size))
	b = append(b, head...)
	b = append(b, strings.Repeat(" ", pad)+"\n"...)
	return append(b, t.Bytes()...), nil
}
