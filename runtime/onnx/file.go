package onnx

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Load reads a model and its external data into memory: about one time its size. Nothing stays
// open. See [Open] for models that should not be read at once.
func Load(path string) (*Model, error) {
	path, err := objects.Local(path)
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	b, err := readBounded(path)
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	m, err := Unmarshal(b)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	if !m.hasExternal() {
		return m, nil
	}
	if err := m.ResolveExternal(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return m, nil
}

func readBounded(path string) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := checkModelFile(path, st); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func checkModelFile(path string, st os.FileInfo) error {
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", path)
	}
	if st.Size() > MaxModelBytes {
		return fmt.Errorf("%s has %d bytes, a model at most %d", path, st.Size(), MaxModelBytes)
	}
	return nil
}

func (m *ModelProto) hasExternal() bool {
	found := errors.New("found")
	return m.EachTensor(func(t *TensorProto) error {
		if t.DataLocation == TensorProto_EXTERNAL {
			return found
		}
		return nil
	}) != nil
}

// File is a model whose bytes, and those of its external data, are mapped from disk. Pages are read
// when they are touched and can be dropped again. So a model of any size takes little memory until
// its weights are used, and then about one time their size. The weights are read-only.
type File struct {
	// Model is the decoded model. Its raw data points into the mapping.
	Model *Model
	maps  [][]byte
}

// Open maps a model and its external data. The files must not be truncated while the File is open:
// the operating system would end the program at the first touch of a missing page. Replacing them
// by renaming, as [Save] does, is safe.
func Open(path string) (*File, error) {
	path, err := objects.Local(path)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	f := &File{}
	if err := f.open(path); err != nil {
		f.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return f, nil
}

func (f *File) open(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := checkModelFile(path, st); err != nil {
		return err
	}
	h, err := os.Open(path)
	if err != nil {
		return err
	}
	b, err := f.mapFile(h, st.Size())
	h.Close()
	if err != nil {
		return err
	}
	if f.Model, err = Unmarshal(b); err != nil {
		return err
	}
	if !f.Model.hasExternal() {
		return nil
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	r := &mapReader{files: folder{root: root}, file: f, maps: map[string][]byte{}}
	return errors.Join(f.Model.resolve(r), r.files.close())
}

// Close unmaps the files. The model's tensors must not be touched afterwards; Model is set to nil.
// Closing twice is no error.
func (f *File) Close() error {
	var errs []error
	for _, b := range f.maps {
		errs = append(errs, atomicfile.Unmap(b))
	}
	f.maps, f.Model = nil, nil
	return errors.Join(errs...)
}

func (f *File) mapFile(h *os.File, size int64) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	if int64(int(size)) != size {
		return nil, fmt.Errorf("%d bytes do not fit the address space", size)
	}
	b, err := atomicfile.Map(h, int(size))
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", size, err)
	}
	f.maps = append(f.maps, b)
	return b, nil
}

// mapReader maps each external file once and hands out parts of it.
type mapReader struct {
	files folder
	file  *File
	maps  map[string][]byte
}

func (r *mapReader) bytes(location string, off, n int64) ([]byte, error) {
	f, err := r.files.open(location)
	if err != nil {
		return nil, err
	}
	if err := f.check(off, n); err != nil {
		return nil, err
	}
	b, ok := r.maps[location]
	if !ok {
		if b, err = r.file.mapFile(f.f, f.size); err != nil {
			return nil, err
		}
		r.maps[location] = b
	}
	if n == 0 {
		return []byte{}, nil
	}
	return b[off : off+n : off+n], nil
}
