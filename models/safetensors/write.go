package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

const metadataKey = "__metadata__"

// Tensor is an array to be written.
type Tensor struct {
	Name  string
	DType DType
	Shape []int  // no dimensions for a scalar
	Data  []byte // little-endian, row-major
	// Source, where it is not nil, is called in place of Data when the bytes are written, once;
	// they may change when the next tensor is asked for.
	Source func() []byte
}

// New returns a tensor that views data, which must not change until it is written.
func New[T Element](name string, shape []int, data []T) Tensor {
	return Tensor{Name: name, DType: dtypeOf[T](), Shape: shape, Data: bytesOf(data)}
}

// Write writes a file with these tensors. The bytes depend on nothing but the arguments: names and
// metadata are written in a fixed order (tensors by falling element size, then as given).
func Write(w io.Writer, metadata map[string]string, tensors []Tensor) error {
	if err := checkHost(); err != nil {
		return err
	}
	ordered := slices.Clone(tensors)
	slices.SortStableFunc(ordered, func(a, b Tensor) int { return b.DType.Size() - a.DType.Size() })
	head, err := header(metadata, ordered)
	if err != nil {
		return fmt.Errorf("write safetensors: %w", err)
	}
	if _, err := w.Write(head); err != nil {
		return fmt.Errorf("write safetensors: header: %w", err)
	}
	for _, t := range ordered {
		data := t.Data
		if t.Source != nil {
			data = t.Source()
			if size, err := byteSize(t.DType, t.Shape); err != nil || size != len(data) {
				return fmt.Errorf("write safetensors: tensor %q: its source gives %d bytes, but shape %v of %s takes %d", t.Name, len(data), t.Shape, t.DType, size)
			}
		}
		// Pieces keep a hash that is computed alongside within the cache.
		for len(data) > 0 {
			n := min(len(data), 256<<10)
			if _, err := w.Write(data[:n]); err != nil {
				return fmt.Errorf("write safetensors: tensor %q: %w", t.Name, err)
			}
			data = data[n:]
		}
	}
	return nil
}

// header returns the length and the padded JSON.
func header(metadata map[string]string, tensors []Tensor) ([]byte, error) {
	var b bytes.Buffer
	b.Write(make([]byte, 8))
	b.WriteByte('{')
	if len(metadata) > 0 {
		b.WriteString(`"` + metadataKey + `":{`)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := writeStrings(&b, key, metadata[key]); err != nil {
				return nil, fmt.Errorf("metadata: %w", err)
			}
		}
		b.WriteByte('}')
	}
	seen := make(map[string]bool, len(tensors))
	offset := 0
	for i, t := range tensors {
		size, err := byteSize(t.DType, t.Shape)
		switch {
		case err != nil:
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		case t.Source == nil && size != len(t.Data):
			return nil, fmt.Errorf("tensor %q: %d bytes, but shape %v of %s takes %d", t.Name, len(t.Data), t.Shape, t.DType, size)
		case seen[t.Name]:
			return nil, fmt.Errorf("tensor %q given twice", t.Name)
		case t.Name == metadataKey:
			return nil, fmt.Errorf("the name %q is reserved", t.Name)
		case offset > math.MaxInt-size:
			return nil, fmt.Errorf("tensor %q: the file would be too large", t.Name)
		}
		seen[t.Name] = true
		if i > 0 || len(metadata) > 0 {
			b.WriteByte(',')
		}
		if err := writeString(&b, t.Name); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		fmt.Fprintf(&b, `:{"dtype":"%s","shape":[`, t.DType)
		for d, dim := range t.Shape {
			if d > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.Itoa(dim))
		}
		fmt.Fprintf(&b, `],"data_offsets":[%d,%d]}`, offset, offset+size)
		offset += size
	}
	b.WriteByte('}')
	for b.Len()%64 != 0 {
		b.WriteByte(' ')
	}
	out := b.Bytes()
	if len(out)-8 > maxHeader {
		return nil, fmt.Errorf("header has %d bytes; the format allows %d", len(out)-8, maxHeader)
	}
	binary.LittleEndian.PutUint64(out, uint64(len(out)-8))
	return out, nil
}

func writeStrings(b *bytes.Buffer, key, value string) error {
	if err := writeString(b, key); err != nil {
		return err
	}
	b.WriteByte(':')
	return writeString(b, value)
}

// writeString refuses what JSON would replace silently.
func writeString(b *bytes.Buffer, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%q is not valid UTF-8", s)
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	b.Write(text)
	return nil
}

// byteSize is the number of bytes of an array, or an error for unknown dtypes, negative dimensions
// and overflow.
func byteSize(d DType, shape []int) (int, error) {
	size := d.Size()
	if size == 0 {
		return 0, fmt.Errorf("unknown dtype %q", string(d))
	}
	for _, dim := range shape {
		if dim < 0 {
			return 0, fmt.Errorf("shape %v has a negative dimension", shape)
		}
		if dim > 0 && size > math.MaxInt/dim {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		size *= dim
	}
	return size, nil
}
