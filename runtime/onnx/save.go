package onnx

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// externalAlign is the alignment of tensors in external files that the ONNX specification advises,
// so that each can be mapped by itself.
const externalAlign = 4096

// SaveOptions say where the weights go. The zero value keeps them in the model's file as long as it
// stays below protobuf's 2 GiB, and otherwise moves those of at least 1 KiB out.
type SaveOptions struct {
	// ExternalThreshold moves initializers of at least so many bytes into the external file. 0
	// decides by the model's size, a negative value keeps all inside.
	ExternalThreshold int
	// ExternalFile is the name of the external file, relative to the model's folder; empty means
	// the model's file name + ".data".
	ExternalFile string
}

// Save writes a model so that a reader sees the old file or the new one, never a part: a temporary
// file in the same folder is written, flushed to the disk and renamed. With external data two files
// are replaced, the data first; each tensor carries a checksum, so a pair left mixed by a crash
// between the two renames is refused by [Load] and not silently used. The model itself is not
// changed. Weights are streamed to the external file and not copied.
func Save(path string, m *Model, o SaveOptions) error {
	if err := save(path, m, o); err != nil {
		return fmt.Errorf("save model: %w", err)
	}
	return nil
}

func save(path string, m *Model, o SaveOptions) error {
	threshold := o.ExternalThreshold
	if threshold == 0 {
		threshold = -1
		// The margin leaves room for readers that add to the message, as ONNX Runtime does to a
		// loaded model.
		if proto.Size(m) > MaxModelBytes-1<<24 {
			threshold = 1024
		}
	}
	if m.hasExternal() {
		return errors.New("the model refers to external data that is not loaded")
	}
	if threshold > 0 {
		name := o.ExternalFile
		if name == "" {
			name = filepath.Base(path) + ".data"
		}
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("file %q: %w", name, ErrExternalPath)
		}
		slim, list, err := externalize(m, name, threshold)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			data := filepath.Join(filepath.Dir(path), filepath.FromSlash(name))
			if err := atomicfile.WriteFile(data, func(w io.Writer) error { return writeExternal(w, list) }); err != nil {
				return err
			}
		}
		m = slim
	}
	b, err := Marshal(m)
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(path, b)
}

// moved pairs an initializer with the reference that replaces it.
type moved struct {
	from *TensorProto
	to   *TensorProto
	off  int64
}

// externalize returns a copy of m whose large initializers are references to the file of that name,
// and the list of what to write there, in order.
func externalize(m *Model, name string, threshold int) (*Model, []moved, error) {
	c := m.ShallowClone()
	var list []moved
	var off int64
	err := eachGraph(c.Graph, func(g *Graph) error {
		for i, t := range g.Initializer {
			size, err := externalSize(t)
			if err != nil || size < int64(threshold) {
				// Strings cannot lie outside; a broken tensor is the checker's to report.
				continue
			}
			off = (off + externalAlign - 1) / externalAlign * externalAlign
			ref := &TensorProto{Name: t.Name, DataType: t.DataType, Dims: t.Dims, DocString: t.DocString, MetadataProps: t.MetadataProps,
				DataLocation: TensorProto_EXTERNAL, ExternalData: []*MetadataProp{{Key: "location", Value: name},
					{Key: "offset", Value: strconv.FormatInt(off, 10)}, {Key: "length", Value: strconv.FormatInt(size, 10)}}}
			ref.ProtoReflect().SetUnknown(t.ProtoReflect().GetUnknown())
			g.Initializer[i] = ref
			list = append(list, moved{from: t, to: ref, off: off})
			off += size
		}
		return nil
	})
	return c, list, err
}

func writeExternal(w io.Writer, list []moved) error {
	var pos int64
	var zero [externalAlign]byte
	for _, e := range list {
		if _, err := w.Write(zero[:e.off-pos]); err != nil {
			return err
		}
		t, err := TensorOf(e.from)
		if err != nil {
			return err
		}
		if _, err := w.Write(t.Bytes()); err != nil {
			return err
		}
		sum := sha1.Sum(t.Bytes())
		e.to.ExternalData = append(e.to.ExternalData, &MetadataProp{Key: "checksum", Value: hex.EncodeToString(sum[:])})
		pos = e.off + int64(len(t.Bytes()))
	}
	return nil
}
