package metrics

import (
	"errors"
	"fmt"
	"maps"
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
		errs = append(errs, s.Scalars(step, values))
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

// sortedTags returns the tags in order, or an error for one that cannot be written.
func sortedTags(values map[string]float64) ([]string, error) {
	tags := slices.Sorted(maps.Keys(values))
	for _, tag := range tags {
		if err := checkTag(tag); err != nil {
			return nil, err
		}
	}
	return tags, nil
}

func checkTag(tag string) error {
	if tag == "" || tag == "step" || tag == "time" || !utf8.ValidString(tag) {
		return fmt.Errorf("tag %q: expected text that is not empty, step or time", tag)
	}
	return nil
}
