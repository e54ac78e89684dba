package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// SourceConfig is the section of a source of this package.
type SourceConfig struct {
	// Path is a file of messages in JSON, a line each, as onnxrl feed writes it.
	Path string `yaml:"path"`
	// Follow waits for lines that are appended; otherwise the source ends with the file.
	Follow bool `yaml:"follow,omitzero"`
}

// Validate reports what is wrong with the fields.
func (c SourceConfig) Validate() error {
	var p configs.Problems
	p.Check(c.Path != "", "path", "required: a file of messages")
	return p.Err()
}

// Source reads lines. The offset of a message is the byte at which its line begins; there is one
// partition.
type Source struct {
	c    SourceConfig
	file *os.File
	at   int64 // of buf
	buf  []byte
	// behind is what the file had at the start, 0 where that has been given.
	behind int64
}

// NewSource returns a source; Start opens its file.
func NewSource(c SourceConfig) *Source { return &Source{c: c} }

// block is how much is read at once, and poll how often the end of a file is looked at.
const (
	block = 1 << 18
	poll  = 20 * time.Millisecond
)

// Start implements livetrade.Source.
func (s *Source) Start(ctx context.Context, next map[int32]int64) (behind []int32, err error) {
	path, err := objects.Local(s.c.Path)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	for {
		s.file, err = os.Open(path)
		if err == nil || !s.c.Follow || !errors.Is(err, os.ErrNotExist) {
			break
		}
		if err := wait(ctx); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	// The offset before the next is that of the last line, which is given again.
	if offset, ok := next[0]; ok {
		s.at = offset - 1
	}
	if _, err := s.file.Seek(s.at, io.SeekStart); err != nil || !s.c.Follow {
		return nil, err
	}
	info, err := s.file.Stat()
	if err != nil || info.Size() <= s.at {
		return nil, err
	}
	s.behind = info.Size()
	return []int32{0}, nil
}

// Poll implements livetrade.Source.
func (s *Source) Poll(ctx context.Context) ([]livetrade.Message, error) {
	for {
		list := s.lines()
		if s.behind > 0 && s.at+int64(len(s.buf)) >= s.behind {
			s.behind = 0
			list = append(list, livetrade.Message{CaughtUp: true})
		}
		if len(list) > 0 {
			return list, nil
		}
		n := len(s.buf)
		if cap(s.buf)-n < block/4 {
			s.buf = append(make([]byte, 0, n+block), s.buf...)
		}
		k, err := s.file.Read(s.buf[n:cap(s.buf)])
		s.buf = s.buf[:n+k]
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if k > 0 {
			continue
		}
		if !s.c.Follow {
			// A last line without an end may be a part of one, and is left out.
			return nil, io.EOF
		}
		if info, err := s.file.Stat(); err != nil || info.Size() < s.at {
			return nil, errors.Join(err, fmt.Errorf("%s: it is shorter than what was read", s.c.Path))
		}
		if err := wait(ctx); err != nil {
			return nil, err
		}
	}
}

// Pause implements livetrade.Source; there is one partition.
func (s *Source) Pause([]int32) {}

// lines takes the whole lines of the buffer. Who takes them may keep them: what follows is read
// behind them.
func (s *Source) lines() []livetrade.Message {
	n := bytes.Count(s.buf, newline)
	if n == 0 {
		return nil
	}
	list := make([]livetrade.Message, 0, n+1)
	rest := s.buf
	for range n {
		k := bytes.IndexByte(rest, '\n')
		if k > 0 {
			list = append(list, livetrade.Message{Offset: s.at, Value: rest[:k:k]})
		}
		rest = rest[k+1:]
		s.at += int64(k) + 1
	}
	s.buf = rest
	return list
}

var newline = []byte{'\n'}

func wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(poll):
		return nil
	}
}

// Close implements livetrade.Source.
func (s *Source) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
