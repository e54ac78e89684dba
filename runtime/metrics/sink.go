package metrics

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// Sink takes metrics.
type Sink interface {
	// Scalars records the values of tags at a step. The map is not kept.
	Scalars(step int64, values map[string]float64) error
	// Close finishes the record; everything before it is already with the operating system.
	Close() error
}

type tee []Sink

// Tee returns a sink that passes everything to all of them. An error of one does not keep the
// others from recording.
func Tee(sinks ...Sink) Sink { return tee(slices.Clone(sinks)) }

func (t tee) Scalars(step int64, values map[string]float64) error {
	var errs []error
	for _, s := range t {
		if err := s.Scalars(step, values); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (t tee) Close() error {
	var errs []error
	for _, s := range t {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// tags is memory for the tags of values.
type tags []string

// sorted returns the tags of values in order, which hold until the next call, or an error for one
// that cannot be written.
func (t *tags) sorted(values map[string]float64) ([]string, error) {
	*t = (*t)[:0]
	for tag := range values {
		if err := checkTag(tag); err != nil {
			return nil, err
		}
		*t = append(*t, tag)
	}
	slices.Sort(*t)
	return *t, nil
}

func checkTag(tag string) error {
	if tag == "" || tag == "step" || tag == "time" || !utf8.ValidString(tag) {
		return fmt.Errorf("tag %q: expected text that is not empty, step or time", tag)
	}
	return nil
}
