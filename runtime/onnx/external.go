package onnx

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ErrExternalPath is wrapped by the error for external data that lies, or pretends to lie, outside
// the model's folder.
var ErrExternalPath = errors.New("external data must lie in the model's folder")

// externalRef is the parsed form of TensorProto.external_data.
type externalRef struct {
	location string
	offset   int64
	length   int64 // -1 when the file does not say
	checksum string
}

func parseExternal(t *TensorProto) (externalRef, error) {
	r := externalRef{length: -1}
	for _, e := range t.GetExternalData() {
		switch e.Key {
		case "location":
			r.location = e.Value
		case "offset", "length":
			v, err := strconv.ParseInt(e.Value, 10, 64)
			if err != nil || v < 0 {
				return r, fmt.Errorf("external data key %q is %q, not a number of bytes", e.Key, e.Value)
			}
			if e.Key == "offset" {
				r.offset = v
			} else {
				r.length = v
			}
		case "checksum":
			r.checksum = e.Value
		}
	}
	if r.location == "" {
		return r, errors.New("external data names no location")
	}
	return r, nil
}

// externalSize returns the bytes that a tensor's type and shape ask for.
func externalSize(t *TensorProto) (int64, error) {
	d := tensor.DType(t.GetDataType())
	if d.Bits() == 0 {
		return 0, fmt.Errorf("element type %v cannot lie in an external file", d)
	}
	_, n, err := protoShape(t)
	if err != nil {
		return 0, err
	}
	return int64(d.ByteLen(n)), nil
}

// reader gives the bytes [off, off+n) of one of the files of a model's folder. The name is local
// and slash-separated.
type externalReader interface {
	bytes(location string, off, n int64) ([]byte, error)
}

// ResolveExternal reads the data of every external tensor from dir into memory and makes the
// tensors ordinary ones. Files outside dir are refused, also through symbolic links
// ([ErrExternalPath]). Offsets, lengths and checksums (SHA-1, where given) are verified. Errors
// name tensor and file.
func (m *ModelProto) ResolveExternal(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("load external data: %w", err)
	}
	r := &copyReader{files: folder{root: root}}
	err = m.resolve(r)
	return errors.Join(err, r.files.close())
}

func (m *ModelProto) resolve(r externalReader) error {
	return m.EachTensor(func(t *TensorProto) error {
		if t.DataLocation != TensorProto_EXTERNAL {
			return nil
		}
		if err := resolveTensor(t, r); err != nil {
			return fmt.Errorf("load external data of tensor %q: %w", t.Name, err)
		}
		return nil
	})
}

func resolveTensor(t *TensorProto, r externalReader) error {
	ref, err := parseExternal(t)
	if err != nil {
		return err
	}
	// filepath.IsLocal knows this system's separators only, and a model travels: what is absolute
	// or climbs on any system is refused on all.
	if !filepath.IsLocal(filepath.FromSlash(ref.location)) || strings.Contains(ref.location, `\`) || strings.Contains(ref.location, ":") {
		return fmt.Errorf("file %q: %w", ref.location, ErrExternalPath)
	}
	want, err := externalSize(t)
	if err != nil {
		return err
	}
	if ref.length >= 0 && ref.length != want {
		return fmt.Errorf("file %q: length is %d, but %v%v takes %d bytes", ref.location, ref.length, tensor.DType(t.DataType), t.Dims, want)
	}
	b, err := r.bytes(ref.location, ref.offset, want)
	if err != nil {
		return fmt.Errorf("file %q: %w", ref.location, err)
	}
	if ref.checksum != "" {
		sum := sha1.Sum(b)
		if got := hex.EncodeToString(sum[:]); !strings.EqualFold(got, ref.checksum) {
			return fmt.Errorf("file %q: checksum of bytes [%d, %d) is %s, the model says %s", ref.location, ref.offset, ref.offset+want, got, ref.checksum)
		}
	}
	t.RawData = b
	t.DataLocation = TensorProto_DEFAULT
	t.ExternalData = nil
	return nil
}

// folder opens the files of a model's folder once each, never one outside it: os.Root refuses paths
// and symbolic links that leave.
type folder struct {
	root  *os.Root
	files map[string]*dataFile
}

type dataFile struct {
	f    *os.File
	size int64
}

func (d *folder) open(location string) (*dataFile, error) {
	if f := d.files[location]; f != nil {
		return f, nil
	}
	name := filepath.FromSlash(location)
	// Looked at before it is opened: opening a named pipe would wait for a writer.
	st, err := d.root.Stat(name)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, errors.New("it does not exist in the model's folder")
		}
		if strings.Contains(err.Error(), "escapes") {
			return nil, fmt.Errorf("%w: %w", ErrExternalPath, err)
		}
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	if d.files == nil {
		d.files = map[string]*dataFile{}
	}
	df := &dataFile{f: f, size: st.Size()}
	d.files[location] = df
	return df, nil
}

func (d *folder) close() error {
	var errs []error
	for _, f := range d.files {
		errs = append(errs, f.f.Close())
	}
	d.files = nil
	return errors.Join(append(errs, d.root.Close())...)
}

func (f *dataFile) check(off, n int64) error {
	if off > f.size || n > f.size-off {
		return fmt.Errorf("bytes [%d, %d) are asked for, it has %d", off, off+n, f.size)
	}
	return nil
}

// copyReader reads into Go memory, aligned so that tensors share it.
type copyReader struct{ files folder }

func (r *copyReader) bytes(location string, off, n int64) ([]byte, error) {
	f, err := r.files.open(location)
	if err != nil {
		return nil, err
	}
	// The size is compared before anything is allocated.
	if err := f.check(off, n); err != nil {
		return nil, err
	}
	b := tensor.New(tensor.Uint8, int(n)).Bytes()
	if _, err := io.ReadFull(io.NewSectionReader(f.f, off, n), b); err != nil {
		return nil, err
	}
	return b, nil
}
