package offline

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Merge writes the episodes of data sets of one environment, in their order, into a folder that
// must not exist. Each file stays one file, so that an interrupted call goes on after the last
// whole one. Behaviours that are alike become one.
func Merge(ctx context.Context, list []*Dataset, to string, told func(episodes, of int64)) (*Manifest, error) {
	if len(list) < 2 {
		return nil, errors.New("merge: expected at least two data sets")
	}
	m := list[0].Manifest
	m.Behaviours, m.Files, m.Episodes, m.Transitions, m.Parents = nil, nil, 0, 0, nil
	total, number := int64(0), make([][]int, len(list))
	for i, d := range list {
		if err := m.agrees(&d.Manifest); err != nil {
			return nil, fmt.Errorf("merge: %s does not fit %s: %w", d.Dir, list[0].Dir, err)
		}
		if d.Gamma != m.Gamma {
			m.Gamma = 0
		}
		for _, b := range d.Behaviours {
			k := slices.Index(m.Behaviours, b)
			if k < 0 {
				k = len(m.Behaviours)
				m.Behaviours = append(m.Behaviours, b)
			}
			number[i] = append(number[i], k)
		}
		for _, p := range d.Parents {
			if !slices.Contains(m.Parents, p) {
				m.Parents = append(m.Parents, p)
			}
		}
		total += d.Episodes
	}
	w, err := Create(to, m)
	if err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	done := w.Parts()
	for i, d := range list {
		first := int64(0)
		for _, f := range d.Files {
			before := first
			first += f.Episodes
			if done > 0 {
				done--
				continue
			}
			err := w.Part(ctx, number[i][f.Behaviour], func(add func(*Episode) error) error {
				r := &reader{d: d, file: f, next: before, e: d.newEpisode(), do: add, wrong: func(e *RowError) error { return e }}
				return r.read(ctx)
			})
			if err != nil {
				return nil, fmt.Errorf("merge: %w", err)
			}
			if told != nil {
				told(w.m.Episodes, total)
			}
		}
	}
	if err := w.Finish(); err != nil {
		return nil, fmt.Errorf("merge: %w", err)
	}
	out := w.Manifest()
	return &out, nil
}

// agrees reports what another data set's episodes have otherwise.
func (m *Manifest) agrees(o *Manifest) error {
	var errs []error
	for _, x := range []struct {
		what string
		a, b any
	}{
		{"environment", m.Environment.Name, o.Environment.Name}, {"observation", m.Observation, o.Observation}, {"action", m.Action, o.Action},
		{"mask", m.Mask, o.Mask}, {"costs", append([]string{}, m.Costs...), append([]string{}, o.Costs...)},
	} {
		if a, b := text(x.a), text(x.b); a != b {
			errs = append(errs, fmt.Errorf("%s: %s, and there %s", x.what, b, a))
		}
	}
	return errors.Join(errs...)
}
