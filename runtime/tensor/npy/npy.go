// Package npy reads the array files of NumPy (numpy.lib.format, versions 1 to 3): little-endian
// numbers and booleans, in C or Fortran order.
//
// Structured, object and text arrays, and big-endian numbers, are errors that say so. Foreign bytes
// are safe to read: nothing larger than the data itself is allocated.
package npy

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const magic = "\x93NUMPY"

// dtypes maps NumPy's type strings, without the byte order, to element types.
var dtypes = map[string]tensor.DType{
	"f2": tensor.Float16, "f4": tensor.Float32, "f8": tensor.Float64,
	"i1": tensor.Int8, "i2": tensor.Int16, "i4": tensor.Int32, "i8": tensor.Int64,
	"u1": tensor.Uint8, "u2": tensor.Uint16, "u4": tensor.Uint32, "u8": tensor.Uint64,
	"b1": tensor.Bool, "c8": tensor.Complex64, "c16": tensor.Complex128,
}

// ReadFile reads one array from a file. Errors name the file.
func ReadFile(path string) (*tensor.Tensor, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read array: %w", err)
	}
	t, err := Decode(b)
	if err != nil {
		return nil, fmt.Errorf("read array %s: %w", path, err)
	}
	return t, nil
}

// Decode returns the array in b. The tensor owns its memory.
func Decode(b []byte) (*tensor.Tensor, error) {
	h, data, err := split(b)
	if err != nil {
		return nil, err
	}
	n, err := tensor.Len(h.shape)
	if err != nil {
		return nil, err
	}
	hi, want := bits.Mul64(uint64(n), uint64(h.dtype.Size()))
	if hi != 0 || want != uint64(len(data)) {
		return nil, fmt.Errorf("%v%v: expected %d bytes of data, got %d", h.dtype, h.shape, want, len(data))
	}
	t := tensor.New(h.dtype, h.shape...)
	if h.fortran {
		transpose(t.Bytes(), data, h.shape, h.dtype.Size())
	} else {
		copy(t.Bytes(), data)
	}
	if h.dtype == tensor.Bool {
		// Any byte but zero is true in NumPy; here, and for the engines, it is exactly one.
		for i, v := range t.Bytes() {
			t.Bytes()[i] = min(v, 1)
		}
	}
	return t, nil
}

type header struct {
	dtype   tensor.DType
	shape   []int
	fortran bool
}

// split parses the preamble and returns the data behind it.
func split(b []byte) (header, []byte, error) {
	if len(b) < 10 || string(b[:6]) != magic {
		return header{}, nil, errors.New("not a NumPy array file (.npy)")
	}
	size, at := 0, 10
	switch major := b[6]; major {
	case 1:
		size = int(binary.LittleEndian.Uint16(b[8:]))
	case 2, 3:
		if len(b) < 12 {
			return header{}, nil, errors.New("the header is truncated")
		}
		size, at = int(binary.LittleEndian.Uint32(b[8:])), 12
	default:
		return header{}, nil, fmt.Errorf("format version %d: expected 1, 2 or 3", major)
	}
	if size < 0 || size > len(b)-at {
		return header{}, nil, fmt.Errorf("the header is truncated: expected %d bytes, got %d", size, len(b)-at)
	}
	h, err := parseHeader(string(b[at : at+size]))
	if err != nil {
		return header{}, nil, fmt.Errorf("header: %w", err)
	}
	return h, b[at+size:], nil
}

// parseHeader reads the Python dictionary literal {'descr': '<f4', 'fortran_order': False, 'shape':
// (2, 3), }.
func parseHeader(s string) (header, error) {
	var h header
	descr, err := field(s, "descr")
	if err != nil {
		return h, err
	}
	quote := descr[:1]
	name, _, ok := strings.Cut(descr[1:], quote)
	if quote != "'" && quote != `"` || !ok || len(name) < 2 {
		return h, fmt.Errorf("structured types are not read: %.40s", descr)
	}
	if order := name[0]; order == '>' {
		return h, fmt.Errorf("type %q is big-endian: expected little-endian; convert it with array.astype(array.dtype.newbyteorder('<'))", name)
	} else if order != '<' && order != '|' && order != '=' {
		return h, fmt.Errorf("type %q is not known", name)
	}
	if h.dtype, ok = dtypes[name[1:]]; !ok {
		return h, fmt.Errorf("type %q is not read: expected numbers or booleans", name)
	}
	order, err := field(s, "fortran_order")
	if err != nil {
		return h, err
	}
	switch {
	case strings.HasPrefix(order, "True"):
		h.fortran = true
	case !strings.HasPrefix(order, "False"):
		return h, errors.New("fortran_order is neither True nor False")
	}
	shape, err := field(s, "shape")
	if err != nil {
		return h, err
	}
	inner, _, closed := strings.Cut(strings.TrimPrefix(shape, "("), ")")
	if !strings.HasPrefix(shape, "(") || !closed {
		return h, errors.New("shape is not a tuple")
	}
	for _, part := range strings.Split(inner, ",") {
		if part = strings.TrimSuffix(strings.TrimSpace(part), "L"); part == "" {
			continue
		}
		d, err := strconv.Atoi(part)
		if err != nil || d < 0 {
			return h, fmt.Errorf("shape (%s): %q is not an extent", inner, part)
		}
		h.shape = append(h.shape, d)
	}
	return h, nil
}

// field returns the text behind a key's colon, at least one character.
func field(s, key string) (string, error) {
	_, rest, ok := strings.Cut(s, "'"+key+"'")
	if rest = strings.TrimSpace(rest); !ok || !strings.HasPrefix(rest, ":") {
		return "", fmt.Errorf("key %q is missing", key)
	}
	if rest = strings.TrimSpace(rest[1:]); rest == "" {
		return "", fmt.Errorf("key %q has no value", key)
	}
	return rest, nil
}

// transpose copies column-major src to row-major dst.
func transpose(dst, src []byte, shape []int, size int) {
	strides := make([]int, len(shape))
	step := size
	for i, d := range shape {
		strides[i] = step
		step *= d
	}
	at := make([]int, len(shape))
	from := 0
	for i := 0; i < len(dst); i += size {
		copy(dst[i:i+size], src[from:from+size])
		for a := len(shape) - 1; a >= 0; a-- {
			at[a]++
			from += strides[a]
			if at[a] < shape[a] {
				break
			}
			from -= at[a] * strides[a]
			at[a] = 0
		}
	}
}
