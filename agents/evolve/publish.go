package evolve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Publish publishes the policy of a member of the last two generations as it is, from its
// checkpoint into its run directory, and returns the path of the model. What it has come of is among
// its parents: see [MemberKind]. One that is published already is left as it is.
func (s *Search) Publish(ctx context.Context, r Record) (path string, err error) {
	return s.export(ctx, r, publish.BestFile, func(p *run.Plan) error {
		from, err := s.genealogy.of(ctx, s.records, r)
		if err == nil {
			_, err = p.Publish(ctx, run.PublishOptions{Newest: true, Parents: []string{from}})
		}
		return err
	})
}

// Policy is Publish for a file that others act with and that is no publication: its parity
// check is short, and it is no version of an artefact.
func (s *Search) Policy(ctx context.Context, r Record) (path string, err error) {
	return s.export(ctx, r, publish.PolicyFile, func(p *run.Plan) error { return p.Keep(ctx) })
}

// export makes a file in the run directory of a member, unless it is there already.
func (s *Search) export(ctx context.Context, r Record, file string, do func(*run.Plan) error) (path string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("generation %d, member %d: %w", r.Generation, r.Member, err)
		}
	}()
	if r.Dir == "" {
		return "", errors.New("it has no policy: it has diverged from the beginning")
	}
	dir := filepath.Join(s.ledger.Dir, filepath.FromSlash(r.Dir))
	path = filepath.Join(dir, file)
	if at, ok, err := publish.StepsOf(path); err == nil && ok && at == r.EnvSteps {
		return path, nil
	}
	o := s.o.Run
	if o.Hooks.Begin, o.Hooks.End = nil, nil; !s.apart {
		o.Factory = s.factory
	}
	p, err := run.Open(ctx, s.o.Kinds, "", run.Job{Resume: dir, Group: s.ledger.Dir, Root: s.root}, o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	return path, do(p)
}

// owner is the record that a record's directory was made for.
func (s *Search) owner(r Record) (Record, bool) {
	g, m := 0, 0
	if _, err := fmt.Sscanf(r.Dir, "generation-%d/member-%d", &g, &m); err != nil || g >= len(s.records) || m >= len(s.records[g]) {
		return r, false
	}
	return s.records[g][m], true
}

// PublishReplay publishes the replay that the members of the search in a directory share, as it was
// after the last generation, into the store of the search. It descends from the members of that
// generation and what they have come of.
func PublishReplay(ctx context.Context, dir string, o run.ReplayOptions) (v artifact.Version, err error) {
	c, cfg, err := readStored(dir)
	if err != nil {
		return v, err
	}
	name, err := study.NameIn(dir)
	if err != nil {
		return v, err
	}
	at, err := checkpoint.Latest(filepath.Join(dir, ReplayDir))
	if errors.Is(err, checkpoint.ErrNone) {
		return v, fmt.Errorf("%s: its members share no replay (replay.capacity), or none of its generations has ended", dir)
	}
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, at.Close()) }()
	_, records, err := load(dir, c.Population)
	if err != nil {
		return v, err
	}
	if at.Step < 1 || at.Step > int64(len(records)) {
		return v, fmt.Errorf("%s is of after %d generations, and %s has %d", at.Path, at.Step, LogFile, len(records))
	}
	m := artifact.Manifest{Name: name, Seed: &cfg.Seed, Info: map[string]string{"generations": fmt.Sprint(at.Step)}}
	g := newGenealogy(dir, name, cmp.Or(c.Metric, cfg.Train.Validation.Metric, "mean_reward"))
	for _, r := range records[at.Step-1] {
		if r.Dir == "" {
			continue
		}
		d, err := g.of(ctx, records, r)
		if err != nil {
			return v, err
		}
		if !slices.Contains(m.Parents, d) {
			m.Parents = append(m.Parents, d)
		}
	}
	return run.PublishReplayOf(ctx, at, filepath.Join(dir, publish.StoreDir), m, o)
}
