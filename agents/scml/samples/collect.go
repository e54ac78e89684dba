package samples

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/filehash"
)

// The folders of the data sets.
const (
	MacroDir    = "macro"
	MicroDir    = "micro"
	ResidualDir = "residual"
)

// Options say what samples are made.
type Options struct {
	// Goal is how many numbers goals have, Horizon how many days ahead are observed.
	Goal, Horizon int
	// Types are those of the agents whose samples are kept, by the name of their class; nil keeps
	// all.
	Types []string
	// Skip goes on where a world cannot be read, and counts it.
	Skip bool
	// Progress, unless nil, receives the number of worlds that are done.
	Progress func(worlds int)
}

// Defaults are goals of 16 numbers over 40 days.
func Defaults() Options { return Options{Goal: scml.FullGoal, Horizon: scml.Horizon} }

func (o *Options) wants(typ string) bool { return o.Types == nil || slices.Contains(o.Types, typ) }

// World is one that samples were made of.
type World struct {
	Path string `json:"path"`
	// SHA256 is the digest of its contracts.csv.
	SHA256 string `json:"sha256,omitempty"`
	Days   int    `json:"days"`
	Levels int    `json:"levels"`
	Agents int    `json:"agents"`
	// Negotiations were held, Decisions are the micro samples.
	Negotiations int `json:"negotiations"`
	Decisions    int `json:"decisions"`
	// Problem says why there are no samples of it.
	Problem string `json:"problem,omitempty"`
}

// Collect makes samples of the worlds in folders, and writes them into a folder that must not
// exist. Two worlds are in memory at a time. When ctx ends the error is ctx's, and the same call
// goes on after the last world; what it writes depends on the worlds and options alone.
func Collect(ctx context.Context, worlds []string, to string, o Options) (_ *Manifest, err error) {
	if err := validGoal(o.Goal); err != nil {
		return nil, err
	}
	if o.Horizon < 0 {
		return nil, fmt.Errorf("a horizon of %d days, expected 0 or more", o.Horizon)
	}
	spec, err := MacroSpec(o.Goal, o.Horizon)
	if err != nil {
		return nil, err
	}
	m, err := begin(to, worlds, o)
	if err != nil {
		return nil, err
	}
	defer func() {
		// A data set that nothing can be added to is in the way of the next one.
		if err != nil && ctx.Err() == nil && (len(m.Worlds) == 0 || len(m.Worlds) == len(worlds)) {
			err = errors.Join(err, os.RemoveAll(m.partial))
		}
	}()
	macro, err := m.writer(MacroDir, spec)
	if err != nil {
		return nil, err
	}
	micro, err := m.writer(MicroDir, MicroSpec(o.Goal))
	if err != nil {
		return nil, err
	}
	if spec, err = ResidualSpec(); err != nil {
		return nil, err
	}
	residual, err := m.writer(ResidualDir, spec)
	if err != nil {
		return nil, err
	}
	if err := m.collect(ctx, worlds, macro, micro, residual, o); err != nil {
		return nil, err
	}
	return m, m.finish(macro, micro, residual)
}

// collect follows the worlds that are left, each while the one before is written.
func (m *Manifest) collect(ctx context.Context, worlds []string, macro, micro, residual *offline.Writer, o Options) error {
	type read struct {
		f    *follower
		took time.Duration
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	next := make(chan read)
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	first := len(m.Worlds)
	wait.Go(func() {
		for i := first; i < len(worlds); i++ {
			start := time.Now()
			f, err := m.read(ctx, worlds[i], i, o)
			select {
			case next <- read{f, time.Since(start), err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
	for i := first; i < len(worlds); i++ {
		var r read
		select {
		case r = <-next:
		case <-ctx.Done():
			return ctx.Err()
		}
		if r.err != nil {
			return r.err
		}
		for _, x := range []struct {
			w    *offline.Writer
			list []*offline.Episode
		}{{macro, r.f.macros()}, {micro, r.f.micro}, {residual, r.f.residuals}} {
			// One that was stopped in between has written the first ones.
			if x.w.Parts() > i {
				continue
			}
			if err := part(ctx, x.w, x.list); err != nil {
				return err
			}
		}
		m.Reading += r.took
		if r.f.world.Problem != "" {
			m.Skipped++
		}
		m.Worlds = append(m.Worlds, r.f.world)
		if err := m.save(); err != nil {
			return err
		}
		if o.Progress != nil {
			o.Progress(i + 1)
		}
	}
	return nil
}

// part writes episodes as the next file.
func part(ctx context.Context, w *offline.Writer, list []*offline.Episode) error {
	return w.Part(ctx, 0, func(add func(*offline.Episode) error) error {
		for _, e := range list {
			if err := add(e); err != nil {
				return err
			}
		}
		return nil
	})
}

// read follows a world. One that cannot be read has no samples, where that is allowed.
func (m *Manifest) read(ctx context.Context, dir string, number int, o Options) (*follower, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := follow(dir, number, o)
	if err != nil && !o.Skip {
		return nil, err
	}
	if err != nil {
		f = &follower{world: World{Problem: err.Error()}}
	}
	f.world.Path = dir
	if f.world.SHA256, err = filehash.SHA256(filepath.Join(dir, "contracts.csv")); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return f, nil
}

// macros are the episodes of the factories whose samples are kept.
func (f *follower) macros() (list []*offline.Episode) {
	for i, e := range f.macro {
		if f.wanted[i] && e.Len() > 0 {
			list = append(list, e)
		}
	}
	return list
}

// writer goes on with a data set.
func (m *Manifest) writer(name string, spec envs.Spec) (*offline.Writer, error) {
	d := offline.Describe(spec)
	d.Environment.Kind = spec.Name
	d.Behaviours = []offline.Behaviour{{Algorithm: "scml logs", Policy: m.Source()}}
	return offline.Create(filepath.Join(m.partial, name), d)
}
