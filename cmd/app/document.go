package app

import (
	"fmt"
	"io"
	"sync"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/configs"
)

// document reads the document that a command takes: a file, a shipped one, or standard input.
func (a *app) document(path string) (*configs.Document, error) { return a.kinds.Read(path) }

// readsDocuments returns what reads documents as read does, or from standard input, whose text is
// kept: commands open a document again, and serve does on SIGHUP.
func readsDocuments(read func(path string) (*configs.Document, error), in io.Reader) func(path string) (*configs.Document, error) {
	if read == nil {
		read = experiment.Document
	}
	piped := sync.OnceValues(func() ([]byte, error) { return io.ReadAll(in) })
	return func(path string) (*configs.Document, error) {
		if path != experiment.StandardInput {
			return read(path)
		}
		text, err := piped()
		if err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return configs.Parse("standard input", text)
	}
}
