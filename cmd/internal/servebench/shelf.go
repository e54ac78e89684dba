package servebench

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// shelf is a source of models in memory whose versions are replaced between two polls.
type shelf struct {
	mu       sync.Mutex
	listings []serve.Listing
}

// put makes the model the only version of its name.
func (s *shelf) put(name, version string, m *onnx.Model, c serve.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listings = slices.DeleteFunc(slices.Clone(s.listings), func(l serve.Listing) bool { return l.Name == name })
	s.listings = append(s.listings, serve.Listing{Name: name, Config: c, Versions: []serve.Candidate{{
		Name: version, Stamp: version, Open: func(context.Context) (*serve.Content, error) { return &serve.Content{Model: m}, nil },
	}}})
	slices.SortFunc(s.listings, func(a, b serve.Listing) int { return cmp.Compare(a.Name, b.Name) })
}

// Scan implements serve.Source.
func (s *shelf) Scan(context.Context) ([]serve.Listing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.listings, nil
}
