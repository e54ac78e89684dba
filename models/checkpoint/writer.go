package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/onnxrl/onnxrl/models/safetensors"
)

// Stater is a component whose state is part of a checkpoint. LoadState restores what SaveState
// saved into a component that was built from the same configuration; after an error its state is
// undefined.
type Stater interface {
	SaveState(w *Writer) error
	LoadState(r *Reader) error
}

// Writer collects the entries of a checkpoint. Arrays are not copied: they must not change until
// [Store.Save] returns. Errors are kept and reported by Err and by Store.Save, so the Put methods
// return none.
type Writer struct {
	all    *collected
	prefix string
}

type collected struct {
	arrays   []safetensors.Tensor
	sections map[string]json.RawMessage
	names    map[string]bool
	errs     []error
}

func newWriter() *Writer {
	return &Writer{all: &collected{sections: map[string]json.RawMessage{}, names: map[string]bool{}}}
}

// Scope returns a writer that puts "name/" before every name.
func (w *Writer) Scope(name string) *Writer {
	w.checkName(name)
	return &Writer{all: w.all, prefix: w.prefix + name + "/"}
}

// Err returns the errors of all Put calls so far, also those of other scopes.
func (w *Writer) Err() error { return errors.Join(w.all.errs...) }

// PutFloat32s adds an array. Without a shape it has one dimension.
func (w *Writer) PutFloat32s(name string, data []float32, shape ...int) { put(w, name, data, shape) }

// PutFloat64s adds an array. Without a shape it has one dimension.
func (w *Writer) PutFloat64s(name string, data []float64, shape ...int) { put(w, name, data, shape) }

// PutInt64s adds an array. Without a shape it has one dimension.
func (w *Writer) PutInt64s(name string, data []int64, shape ...int) { put(w, name, data, shape) }

// PutUint64s adds an array. Without a shape it has one dimension.
func (w *Writer) PutUint64s(name string, data []uint64, shape ...int) { put(w, name, data, shape) }

// PutInt32s adds an array. Without a shape it has one dimension.
func (w *Writer) PutInt32s(name string, data []int32, shape ...int) { put(w, name, data, shape) }

// PutBytes adds an array of bytes. Without a shape it has one dimension.
func (w *Writer) PutBytes(name string, data []byte, shape ...int) { put(w, name, data, shape) }

// PutBools adds an array. Without a shape it has one dimension.
func (w *Writer) PutBools(name string, data []bool, shape ...int) { put(w, name, data, shape) }

// PutTensor adds an array of any element type, for instance half precision; the name of t is not
// used.
func (w *Writer) PutTensor(name string, t safetensors.Tensor) {
	if name, ok := w.claim(name); ok {
		t.Name = name
		w.all.arrays = append(w.all.arrays, t)
	}
}

// PutJSON adds a section: counters, random streams, a configuration. It is encoded at once, so v
// may change afterwards. Floating-point numbers survive exactly; NaN and infinities are an error,
// put those into an array.
func (w *Writer) PutJSON(name string, v any) {
	full, ok := w.claim(name)
	if !ok {
		return
	}
	text, err := json.Marshal(v)
	if err != nil {
		w.fail("section %q: %w", full, err)
		return
	}
	w.all.sections[full] = text
}

func put[T safetensors.Element](w *Writer, name string, data []T, shape []int) {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	w.PutTensor(name, safetensors.New("", shape, data))
}

func (w *Writer) fail(format string, args ...any) {
	w.all.errs = append(w.all.errs, fmt.Errorf(format, args...))
}

func (w *Writer) checkName(name string) bool {
	if name == "" || !utf8.ValidString(name) {
		w.fail("name %q below %q: expected text that is not empty", name, w.prefix)
		return false
	}
	return true
}

// claim returns the full name, which arrays and sections share.
func (w *Writer) claim(name string) (string, bool) {
	if !w.checkName(name) {
		return "", false
	}
	full := w.prefix + name
	if w.all.names[full] {
		w.fail("entry %q is saved twice", full)
		return "", false
	}
	w.all.names[full] = true
	return full, true
}
