package models

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Bases holds the bases of networks whose adapters differ, each once, found by content. They stay
// until it is closed. It is safe for concurrent use, and the zero value is ready.
type Bases struct {
	mu   sync.Mutex
	held map[string]*Segment
}

// Of returns the segment of the specs with role [Base] and their values, to be shared by
// [NewParams]; nil where there are none. The first to ask makes it of a copy. A nil b holds
// nothing.
func (b *Bases) Of(specs []Spec, values map[string]*tensor.Tensor) (*Segment, error) {
	own := baseOf(specs)
	if b == nil || len(own) == 0 {
		return nil, nil
	}
	for _, p := range own {
		if values[p.Name] == nil {
			return nil, fmt.Errorf("base parameter %q has no value", p.Name)
		}
	}
	sum := sumOf(own, func(i int) *tensor.Tensor { return values[own[i].Name] })
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.held[sum]; s != nil {
		return s, nil
	}
	s, err := NewSegment(Base, own)
	if err != nil {
		return nil, err
	}
	for i, p := range own {
		if err := s.View(i).CopyFrom(values[p.Name]); err != nil {
			return nil, errors.Join(fmt.Errorf("base parameter %q: %w", p.Name, err), s.Close())
		}
	}
	if b.held == nil {
		b.held = map[string]*Segment{}
	}
	b.held[sum] = s
	return s, nil
}

// Close gives up all bases; those that nobody else holds are freed.
func (b *Bases) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for sum, s := range b.held {
		errs = append(errs, s.Close())
		delete(b.held, sum)
	}
	return errors.Join(errs...)
}

func baseOf(specs []Spec) []Spec {
	return slices.DeleteFunc(slices.Clone(specs), func(s Spec) bool { return s.Role != Base })
}

// Sum returns the SHA-256 of a segment's parameters, with their names and shapes, as hexadecimal
// digits.
func (s *Segment) Sum() string { return sumOf(s.specs, s.View) }

// BaseSum returns what [Segment.Sum] would of the specs with role [Base]; empty where there are
// none.
func BaseSum(specs []Spec, values map[string]*tensor.Tensor) string {
	own := baseOf(specs)
	if len(own) == 0 {
		return ""
	}
	return sumOf(own, func(i int) *tensor.Tensor { return values[own[i].Name] })
}

func sumOf(specs []Spec, value func(i int) *tensor.Tensor) string {
	h := sha256.New()
	for i, s := range specs {
		fmt.Fprintf(h, "%q %v\n", s.Name, s.Shape)
		h.Write(value(i).Bytes())
	}
	return hex.EncodeToString(h.Sum(nil))
}
