package offline

import (
	"context"
	"errors"
	"fmt"
)

// source gives the episodes of one behaviour one after the other, nil at the end. What it has
// returned may be overwritten by the next one.
type source func() (*Episode, error)

// fill writes what a source has, in files of a number of episodes. What no agent could learn from,
// such as an action outside of its space or a reward that is no number, ends it.
func (w *Writer) fill(ctx context.Context, behaviour int, next source, told func(episodes int64)) error {
	c, err := NewChecker(&Dataset{Manifest: w.m})
	if err != nil {
		return err
	}
	for done := false; !done; {
		e, err := next()
		if err != nil {
			return err
		}
		if e == nil {
			return nil
		}
		err = w.Part(ctx, behaviour, func(add func(*Episode) error) error {
			for n := 1; ; n++ {
				e.Number = w.m.Episodes + int64(n) - 1
				if err := c.Check(e); err != nil {
					return err
				}
				if err := add(e); err != nil {
					return err
				}
				if told != nil {
					told(w.m.Episodes + int64(n))
				}
				if n == partEpisodes {
					return nil
				}
				if e, err = next(); err != nil {
					return err
				}
				if done = e == nil; done {
					return nil
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// importing writes a data set whose sources cannot go on in the middle: after an error nothing of
// it is left.
func importing(to string, m Manifest, write func(w *Writer) error) (*Manifest, error) {
	w, err := Create(to, m)
	if err != nil {
		return nil, err
	}
	if w.Parts() > 0 {
		return nil, fmt.Errorf("%s holds a part of another import; remove it", w.partial)
	}
	if err := write(w); err != nil {
		return nil, errors.Join(err, w.Discard())
	}
	if err := w.Finish(); err != nil {
		return nil, errors.Join(err, w.Discard())
	}
	done := w.Manifest()
	return &done, nil
}
