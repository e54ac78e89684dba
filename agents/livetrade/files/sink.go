// Package files has the bars and the decisions of package livetrade in files: a source that reads
// messages, a line each, from a file that may grow, and a sink that appends records to a file for
// each topic.
package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// SinkConfig is the section of a sink of this package.
type SinkConfig struct {
	// Path is a directory, which is made where it is missing. Each topic has a file in it, such as
	// orders.jsonl, and messages that cannot be read are in dead.jsonl.
	Path string `yaml:"path"`
	// Sync writes each batch to the disk before the next; otherwise batches survive the end of the
	// program and not that of the machine.
	Sync bool `yaml:"sync,omitzero"`
}

// Validate reports what is wrong with the fields.
func (c SinkConfig) Validate() error {
	var p configs.Problems
	p.Check(c.Path != "", "path", "required: a directory")
	return p.Err()
}

// Sink appends records to files. A batch is whole when the line of its positions is: when it is
// opened, lines of a batch that is not are removed.
type Sink struct {
	c     SinkConfig
	files [livetrade.Topics]*os.File
	dead  *os.File
	lines [livetrade.Topics][]byte
}

// NewSink returns a sink; Start opens its files.
func NewSink(c SinkConfig) *Sink { return &Sink{c: c} }

// Path is the file of a topic in a directory.
func Path(dir string, t livetrade.Topic) string { return filepath.Join(dir, t.String()+".jsonl") }

// Start implements livetrade.Sink.
func (s *Sink) Start(context.Context) (last uint64, err error) {
	if err := os.MkdirAll(s.c.Path, 0o755); err != nil {
		return 0, fmt.Errorf("sink: %w", err)
	}
	for t := livetrade.Topics - 1; t >= 0; t-- {
		if s.files[t], err = os.OpenFile(Path(s.c.Path, t), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
			return 0, fmt.Errorf("sink: %w", err)
		}
		most := last
		if t == livetrade.Positions {
			most = 1<<64 - 1
		}
		seq, err := trim(s.files[t], most)
		if err != nil {
			return 0, fmt.Errorf("sink: %s: %w", s.files[t].Name(), err)
		}
		if t == livetrade.Positions {
			last = seq
		}
	}
	if s.dead, err = os.OpenFile(filepath.Join(s.c.Path, "dead.jsonl"), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return 0, fmt.Errorf("sink: %w", err)
	}
	if err := endLine(s.dead); err != nil {
		return 0, fmt.Errorf("sink: %s: %w", s.dead.Name(), err)
	}
	return last, nil
}

// endLine removes a last line without an end, which the next one would make one that cannot be read.
// The file is then at its end.
func endLine(f *os.File) error {
	at, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	whole := int64(0)
	for b := make([]byte, 1<<12); at > 0; {
		n := min(at, int64(len(b)))
		at -= n
		if _, err := f.ReadAt(b[:n], at); err != nil {
			return err
		}
		if k := bytes.LastIndexByte(b[:n], '\n'); k >= 0 {
			whole = at + int64(k) + 1
			break
		}
	}
	if err := f.Truncate(whole); err != nil {
		return err
	}
	_, err = f.Seek(whole, io.SeekStart)
	return err
}

// trim removes a last line without an end, and lines of decisions after most, and returns the
// decision of the last line. The file is then at its end.
func trim(f *os.File, most uint64) (last uint64, err error) {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	// Lines of the end, so that a long file is not read whole.
	for size := int64(1 << 16); ; size *= 4 {
		start := max(0, end-size)
		block := make([]byte, end-start)
		if _, err := f.ReadAt(block, start); err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		keep := bytes.LastIndexByte(block, '\n') + 1
		for keep > 0 {
			begin := bytes.LastIndexByte(block[:keep-1], '\n') + 1
			if begin == 0 && start > 0 {
				break // Perhaps only the end of a line.
			}
			var line struct {
				Seq uint64 `json:"seq"`
			}
			if err := json.Unmarshal(block[begin:keep], &line); err != nil || line.Seq == 0 {
				return 0, fmt.Errorf("byte %d: it is no record of a decision", start+int64(begin))
			}
			if line.Seq <= most {
				last = line.Seq
				break
			}
			keep = begin
		}
		if last == 0 && start > 0 {
			continue
		}
		whole := start + int64(keep)
		if err := f.Truncate(whole); err != nil {
			return 0, err
		}
		_, err = f.Seek(whole, io.SeekStart)
		return last, err
	}
}

// Publish implements livetrade.Sink.
func (s *Sink) Publish(b *livetrade.Batch) error {
	for t := range s.lines {
		s.lines[t] = s.lines[t][:0]
	}
	for i := range b.Records {
		r := &b.Records[i]
		s.lines[r.Topic] = append(append(s.lines[r.Topic], b.Value(r)...), '\n')
	}
	// In the order of the topics: positions are the last.
	for t, text := range s.lines {
		if len(text) == 0 {
			continue
		}
		if _, err := s.files[t].Write(text); err != nil {
			return fmt.Errorf("sink: %w", err)
		}
		if s.c.Sync {
			if err := errors.Join(s.files[t].Sync(), atomicfile.There(s.files[t])); err != nil {
				return fmt.Errorf("sink: %w", err)
			}
		}
	}
	return nil
}

// Bad implements livetrade.Sink.
func (s *Sink) Bad(b *livetrade.Bad) error {
	text, err := json.Marshal(map[string]any{"partition": b.Partition, "offset": b.Offset, "reason": b.Err.Error(), "value": b.Value})
	if err == nil {
		_, err = s.dead.Write(append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("sink: %w", err)
	}
	return nil
}

// Flush implements livetrade.Sink.
func (s *Sink) Flush(context.Context) error {
	for _, f := range s.files {
		if err := errors.Join(f.Sync(), atomicfile.There(f)); err != nil {
			return fmt.Errorf("sink: %w", err)
		}
	}
	return nil
}

// Close implements livetrade.Sink.
func (s *Sink) Close() (err error) {
	for _, f := range append(s.files[:], s.dead) {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}
