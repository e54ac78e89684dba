package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
)

// File is an opened file. Its methods are safe for concurrent use, except Close.
type File struct {
	src      io.ReaderAt
	closer   io.Closer
	data     int64 // offset of the data
	order    []Info
	infos    map[string]Info
	metadata map[string]string
}

// Open opens the file at path and checks its header. Close it after use.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open safetensors: %w", err)
	}
	stat, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open safetensors: %w", err)
	}
	file, err := NewFile(f, stat.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("open safetensors %s: %w", path, err)
	}
	file.closer = f
	return file, nil
}

// NewFile reads the header of a file of the given size.
func NewFile(src io.ReaderAt, size int64) (*File, error) {
	if err := checkHost(); err != nil {
		return nil, err
	}
	var length [8]byte
	if size < 8 {
		return nil, fmt.Errorf("file has %d bytes, too few for a header", size)
	}
	if _, err := src.ReadAt(length[:], 0); err != nil {
		return nil, fmt.Errorf("read header length: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || n > uint64(size-8) {
		return nil, fmt.Errorf("header of %d bytes does not fit the file of %d bytes or the limit of %d", n, size, maxHeader)
	}
	if size > math.MaxInt {
		return nil, fmt.Errorf("file of %d bytes is too large for this platform", size)
	}
	text := make([]byte, n)
	if _, err := src.ReadAt(text, 8); err != nil && !(errors.Is(err, io.EOF) && n == 0) {
		return nil, fmt.Errorf("read header: %w", err)
	}
	f := &File{src: src, data: 8 + int64(n), infos: map[string]Info{}}
	var err error
	if f.order, f.metadata, err = parseHeader(text, int(size-f.data)); err != nil {
		return nil, err
	}
	for _, info := range f.order {
		f.infos[info.Name] = info
	}
	return f, nil
}

// Close closes the file that Open opened.
func (f *File) Close() error {
	if f.closer == nil {
		return nil
	}
	return f.closer.Close()
}

// Tensors lists the arrays in the order of the header.
func (f *File) Tensors() []Info { return slices.Clone(f.order) }

// Metadata returns a copy of the free-form strings of the file.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Lookup returns the description of an array.
func (f *File) Lookup(name string) (Info, bool) {
	info, ok := f.infos[name]
	return info, ok
}

// ReadBytes fills dst with the bytes of an array, whatever its dtype; dst has its size.
func (f *File) ReadBytes(dst []byte, name string) error {
	info, ok := f.infos[name]
	if !ok {
		return fmt.Errorf("read tensor %q: the file does not have it", name)
	}
	if len(dst) != info.Size() {
		return fmt.Errorf("read tensor %q: it has %d bytes, the destination %d", name, info.Size(), len(dst))
	}
	if _, err := f.src.ReadAt(dst, f.data+int64(info.begin)); err != nil && !(errors.Is(err, io.EOF) && len(dst) == 0) {
		return fmt.Errorf("read tensor %q: %w", name, err)
	}
	if info.DType == Bool {
		for i, b := range dst {
			// A Go bool with another bit pattern would be undefined.
			if b > 1 {
				clear(dst)
				return fmt.Errorf("read tensor %q: element %d is %d, which is no bool", name, i, b)
			}
		}
	}
	return nil
}

// Read fills dst with an array of the same dtype and number of elements. Arrays of F16 and BF16 are
// read into uint16. After an error dst may be partly filled.
func Read[T Element](f *File, dst []T, name string) error {
	info, ok := f.infos[name]
	if !ok {
		return fmt.Errorf("read tensor %q: the file does not have it", name)
	}
	want := dtypeOf[T]()
	half := want == U16 && (info.DType == F16 || info.DType == BF16)
	if info.DType != want && !half {
		return fmt.Errorf("read tensor %q: it holds %s, the destination %s", name, info.DType, want)
	}
	if info.Len() != len(dst) {
		return fmt.Errorf("read tensor %q: it has %d elements, the destination %d", name, info.Len(), len(dst))
	}
	return f.ReadBytes(bytesOf(dst), name)
}
