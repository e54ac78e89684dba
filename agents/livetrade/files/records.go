package files

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/onnxrl/onnxrl/agents/livetrade"
)

// Read implements livetrade.Published.
func (s *Sink) Read(_ context.Context, t livetrade.Topic) (livetrade.Records, error) {
	f, err := os.Open(Path(s.c.Path, t))
	if err != nil {
		return nil, fmt.Errorf("sink: %w", err)
	}
	return &records{f, bufio.NewReaderSize(f, block), nil}, nil
}

// records are the lines of a file.
type records struct {
	file *os.File
	in   *bufio.Reader
	line []byte
}

func (r *records) Next() ([]byte, error) {
	r.line = r.line[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		r.line = append(r.line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(r.line, []byte("\n")), nil
		case err == bufio.ErrBufferFull:
		case err == io.EOF && len(r.line) > 0:
			return nil, fmt.Errorf("%s: the last line has no end", r.file.Name())
		default:
			return nil, err
		}
	}
}

func (r *records) Close() error { return r.file.Close() }
