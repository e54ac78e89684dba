package checkpoint

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/models/safetensors"
)

// Copy makes a component what another one is, by a checkpoint in memory: as [Store.Save] of the one
// and [Checkpoint.Load] into the other. After an error the state of to is undefined.
func Copy(to, from Stater) error {
	w := newWriter()
	if err := errors.Join(from.SaveState(w), w.Err()); err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	var text bytes.Buffer
	if err := safetensors.Write(&text, nil, w.all.arrays); err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	arrays, err := safetensors.NewFile(bytes.NewReader(text.Bytes()), int64(text.Len()))
	if err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	if err := load(to, newReader(arrays, w.all.sections)); err != nil {
		return fmt.Errorf("copy state: %w", err)
	}
	return nil
}

// SaveScope publishes what lies below a reader's scope as a checkpoint of its own, whose bytes depend
// on nothing else, as [Store.Save] does. The reader's checkpoint stays open meanwhile.
func (s *Store) SaveScope(m Meta, r *Reader) (path string, err error) {
	c := &scope{r: r}
	path, err = s.Save(m, c)
	return path, errors.Join(c.err, err)
}

// scope is what lies below the scope of a reader, to be saved.
type scope struct {
	r   *Reader
	err error
}

// SaveState implements Stater. Arrays are read one after the other as they are written.
func (c *scope) SaveState(w *Writer) error {
	for _, name := range c.r.Names() {
		full := c.r.prefix + name
		if text, ok := c.r.all.sections[full]; ok {
			w.PutJSON(name, text)
			continue
		}
		info, _ := c.r.all.arrays.Lookup(full)
		w.PutTensor(name, safetensors.Tensor{DType: info.DType, Shape: info.Shape, Source: func() []byte {
			data := make([]byte, info.Size())
			if err := c.r.all.arrays.ReadBytes(data, full); err != nil {
				c.err = errors.Join(c.err, err)
				return nil
			}
			return data
		}})
	}
	return nil
}

// LoadState implements Stater.
func (c *scope) LoadState(*Reader) error { return errors.New("a part of a checkpoint is only saved") }
