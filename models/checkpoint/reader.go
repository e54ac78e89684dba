package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models/safetensors"
)

// Reader gives back the entries of a checkpoint. Every method returns its own error, and the reader
// also keeps it, so that [Checkpoint.Load] reports everything that does not fit, not just the first
// thing.
type Reader struct {
	all    *opened
	prefix string
}

type opened struct {
	arrays   *safetensors.File
	sections map[string]json.RawMessage
	unread   map[string]bool
	errs     []error
}

// Scope returns a reader that puts "name/" before every name.
func (r *Reader) Scope(name string) *Reader {
	return &Reader{all: r.all, prefix: r.prefix + name + "/"}
}

// Has reports whether an entry of this name exists. Optional entries are asked for first.
func (r *Reader) Has(name string) bool {
	full := r.prefix + name
	if _, ok := r.all.arrays.Lookup(full); ok {
		return true
	}
	_, ok := r.all.sections[full]
	return ok
}

// Names lists the entries below this scope, sorted, without the scope's prefix.
func (r *Reader) Names() []string {
	var names []string
	add := func(full string) {
		if name, ok := strings.CutPrefix(full, r.prefix); ok {
			names = append(names, name)
		}
	}
	for _, info := range r.all.arrays.Tensors() {
		add(info.Name)
	}
	for name := range r.all.sections {
		add(name)
	}
	slices.Sort(names)
	return names
}

// Skip marks the entries below this scope as read: what is there is deliberately not restored.
func (r *Reader) Skip() {
	for name := range r.all.unread {
		if strings.HasPrefix(name, r.prefix) {
			delete(r.all.unread, name)
		}
	}
}

// Err returns the errors of all reads so far, also those of other scopes.
func (r *Reader) Err() error { return errors.Join(r.all.errs...) }

// Shape returns the dimensions of an array; ok is false where there is none of this name. It does
// not count as reading.
func (r *Reader) Shape(name string) (shape []int, ok bool) {
	info, ok := r.all.arrays.Lookup(r.prefix + name)
	return slices.Clone(info.Shape), ok
}

// Float32sInto fills dst with an array that has exactly this shape; without a shape, len(dst)
// elements in one dimension.
func (r *Reader) Float32sInto(name string, dst []float32, shape ...int) error {
	return into(r, name, dst, shape)
}

// Float64sInto fills dst as Float32sInto does.
func (r *Reader) Float64sInto(name string, dst []float64, shape ...int) error {
	return into(r, name, dst, shape)
}

// Int64sInto fills dst as Float32sInto does.
func (r *Reader) Int64sInto(name string, dst []int64, shape ...int) error {
	return into(r, name, dst, shape)
}

// Uint64sInto fills dst as Float32sInto does.
func (r *Reader) Uint64sInto(name string, dst []uint64, shape ...int) error {
	return into(r, name, dst, shape)
}

// Int32sInto fills dst as Float32sInto does.
func (r *Reader) Int32sInto(name string, dst []int32, shape ...int) error {
	return into(r, name, dst, shape)
}

// BytesInto fills dst as Float32sInto does.
func (r *Reader) BytesInto(name string, dst []byte, shape ...int) error {
	return into(r, name, dst, shape)
}

// BoolsInto fills dst as Float32sInto does.
func (r *Reader) BoolsInto(name string, dst []bool, shape ...int) error {
	return into(r, name, dst, shape)
}

// TensorInto fills t.Data, whose name is not used, from an array that has exactly its element type
// and shape.
func (r *Reader) TensorInto(name string, t safetensors.Tensor) error {
	return r.read(name, t.DType, t.Shape, func(full string) error { return r.all.arrays.ReadBytes(t.Data, full) })
}

// Float32s returns a new slice with an array and its shape.
func (r *Reader) Float32s(name string) (data []float32, shape []int, err error) {
	return fresh[float32](r, name)
}

// Float64s returns a new slice with an array and its shape.
func (r *Reader) Float64s(name string) (data []float64, shape []int, err error) {
	return fresh[float64](r, name)
}

// Int64s returns a new slice with an array and its shape.
func (r *Reader) Int64s(name string) (data []int64, shape []int, err error) {
	return fresh[int64](r, name)
}

// Bytes returns a new slice with an array of bytes and its shape.
func (r *Reader) Bytes(name string) (data []byte, shape []int, err error) {
	return fresh[byte](r, name)
}

// JSON decodes a section into the value that v points to. A key that v does not have is an error.
func (r *Reader) JSON(name string, v any) error {
	full := r.prefix + name
	text, ok := r.all.sections[full]
	if !ok {
		return r.fail("section %q is missing%s", full, r.hint(full))
	}
	delete(r.all.unread, full)
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return r.fail("section %q: %w", full, err)
	}
	return nil
}

func into[T safetensors.Element](r *Reader, name string, dst []T, shape []int) error {
	if len(shape) == 0 {
		shape = []int{len(dst)}
	}
	want := safetensors.New("", shape, dst)
	return r.read(name, want.DType, shape, func(full string) error { return safetensors.Read(r.all.arrays, dst, full) })
}

func fresh[T safetensors.Element](r *Reader, name string) ([]T, []int, error) {
	info, ok := r.all.arrays.Lookup(r.prefix + name)
	if !ok {
		return nil, nil, r.read(name, "", nil, nil)
	}
	dst := make([]T, info.Len())
	if err := into(r, name, dst, info.Shape); err != nil {
		return nil, nil, err
	}
	return dst, slices.Clone(info.Shape), nil
}

func (r *Reader) read(name string, dtype safetensors.DType, shape []int, fill func(full string) error) error {
	full := r.prefix + name
	info, ok := r.all.arrays.Lookup(full)
	if !ok {
		return r.fail("array %q is missing%s", full, r.hint(full))
	}
	delete(r.all.unread, full)
	if info.DType != dtype || !slices.Equal(info.Shape, shape) {
		return r.fail("array %q is %s%v in the checkpoint, expected %s%v", full, info.DType, info.Shape, dtype, shape)
	}
	if err := fill(full); err != nil {
		return r.fail("%w", err)
	}
	return nil
}

// hint says when a name exists as the other kind of entry.
func (r *Reader) hint(full string) string {
	if _, ok := r.all.sections[full]; ok {
		return "; there is a section of that name"
	}
	if _, ok := r.all.arrays.Lookup(full); ok {
		return "; there is an array of that name"
	}
	return ""
}

func (r *Reader) fail(format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	r.all.errs = append(r.all.errs, err)
	return err
}

// left returns the error for entries that nobody has read.
func (r *Reader) left() error {
	if len(r.all.unread) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(r.all.unread))
	shown := names[:min(len(names), 10)]
	text := fmt.Sprintf("%q", shown)
	if len(names) > len(shown) {
		text += fmt.Sprintf(" and %d more", len(names)-len(shown))
	}
	return fmt.Errorf("nothing has read %s", strings.Trim(text, "[]"))
}
