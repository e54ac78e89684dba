package evolve

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Run trains generation by generation what is left. When ctx ends, members save their state and the
// error is ctx's: a search that goes on gives the bits of one that never stopped.
func (s *Search) Run(ctx context.Context) error {
	for len(s.records) < s.c.Generations {
		if err := s.Generation(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Generation trains the next generation of all members and records it, as [Search.Run] does.
func (s *Search) Generation(ctx context.Context) (err error) {
	if err := s.share(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.unshare())
		}
	}()
	g := len(s.records)
	takes := s.decide()
	list, restored := make([]Record, len(takes)), map[string]bool{}
	for i, t := range takes {
		s.watch.Begins(t.Action)
		list[i] = Record{
			Generation: g, Member: i, Action: t.Action, Parent: t.Weights, HyperFrom: t.Hyper, Values: t.Values, Score: performance.Number(math.NaN()), Distance: performance.Number(math.NaN()),
			Seed: s.seed(g, i, t.Action), Skill: s.skill(i, t.Action),
		}
		if t.Weights < 0 {
			continue
		}
		from := s.records[g-1][t.Weights]
		again, err := s.restore(ctx, from)
		if err != nil {
			return err
		}
		if restored[from.Dir] = restored[from.Dir] || again; restored[from.Dir] {
			// It had gone on from the same state, but not from this file.
			if err := os.RemoveAll(filepath.Join(s.ledger.Dir, dirOf(g, i))); err != nil {
				return err
			}
		}
	}
	doc, err := s.edited(ctx, append(s.records[:g:g], list))
	if err != nil {
		return err
	}
	if err := s.divide(); err != nil {
		return err
	}
	// An error other than divergence would come again; the other members save their state.
	err = run.Each(ctx, s.o.Parallel, len(list), func(ctx context.Context, i int) error {
		began := time.Now()
		err := s.train(ctx, doc, &list[i])
		s.ended(&list[i], err, time.Since(began))
		return err
	})
	if err != nil {
		return err
	}
	if err := s.compare(list); err != nil {
		return err
	}
	if err := s.shared(); err != nil {
		return err
	}
	if err := s.log.Append(list...); err != nil {
		return err
	}
	s.records = append(s.records, list)
	s.show()
	if s.o.Recorded != nil {
		s.o.Recorded(list)
	}
	return s.clear()
}

// decide returns what members begin the next generation with. A member without a checkpoint, which
// has diverged from the beginning, restarts.
func (s *Search) decide() []Take {
	g := len(s.records)
	takes := make([]Take, s.c.Population)
	switch history := s.history(); {
	case g == 0:
	case g%s.c.Every > 0:
		takes = keep(history[g-1])
	default:
		takes = s.strategy.Next(decided(history, s.c.Every), s.c.Space, s.key.Split("generation", g).Stream())
	}
	again := s.tooClose()
	for i := range takes {
		t, action := &takes[i], Begin
		switch {
		case i == again:
			action = Restart
		case g > 0 && s.records[g-1][t.Weights].Dir != "":
			t.Values = s.valid(t.Values)
			continue
		}
		*t = Take{Weights: -1, Hyper: -1, Action: action}
		draws := s.key.Split("begin", g, i).Stream()
		for range 32 {
			t.Values = s.c.Space.Draw(draws)
			if _, err := s.member(s.doc, s.c.Space, t.Values); err == nil {
				break
			}
		}
	}
	return takes
}

// tooClose is the member that restarts because policies lie too close to each other: the worst; -1
// for none.
func (s *Search) tooClose() int {
	g, d := len(s.records), s.c.Diversity
	if g == 0 || d.Threshold == 0 || g >= s.c.Generations-d.Rest {
		return -1
	}
	for _, list := range s.records[max(0, g-max(1, d.Patience)+1):] {
		if slices.ContainsFunc(list, func(r Record) bool { return r.Action == Restart }) {
			return -1
		}
	}
	last := s.records[g-1]
	if mapd := mapdOf(last); !(mapd < d.Threshold) {
		return -1
	}
	return order(s.c, last)[len(last)-1]
}

// seed is that of a member, which every document can hold. A member that restarts has another.
func (s *Search) seed(g, i int, action string) uint64 {
	k := s.key.Split("seed", i)
	if action == Restart {
		k = s.key.Split("restart", g, i)
	}
	return k.Stream().Uint64() >> 32
}

// skill is that of a member in the next generation, nil without skills: its own throughout, and
// when it restarts the next one that nobody has, as long as there is one.
func (s *Search) skill(i int, action string) *int {
	n := s.cfg.Wrappers.Skill.Dim
	if n == 0 {
		return nil
	}
	z := i % n
	if g := len(s.records); g > 0 {
		last := s.records[g-1]
		z = *last[i].Skill
		if action == Restart {
			for range n {
				z = (z + 1) % n
				if !slices.ContainsFunc(last, func(r Record) bool { return *r.Skill == z }) {
					break
				}
			}
		}
	}
	return &z
}

// valid returns values that the document takes: those that it refuses are brought back between the
// bounds of the search space.
func (s *Search) valid(v tune.Values) tune.Values {
	if _, err := s.member(s.doc, s.c.Space, v); err == nil {
		return v
	}
	v = maps.Clone(v)
	for _, path := range s.c.Space.Paths() {
		one := tune.Space{path: s.c.Space[path]}
		if _, err := s.member(s.doc, one, v); err != nil {
			set(v, path, s.c.Space[path], v[path], true)
		}
	}
	return v
}

// decided is what a strategy that decides after every so many generations sees of them: the last of
// each stretch, whose parents are those that the stretch began with.
func decided(history [][]Member, every int) (out [][]Member) {
	for g := every - 1; g < len(history); g += every {
		list := slices.Clone(history[g])
		for i := range list {
			for back := 1; back < every && list[i].Parent >= 0; back++ {
				list[i].Parent = history[g-back][list[i].Parent].Parent
			}
		}
		out = append(out, list)
	}
	return out
}

// history is what strategies see of the records.
func (s *Search) history() [][]Member {
	sign := 1.0
	if s.c.Direction == tune.Minimize {
		sign = -1
	}
	var history [][]Member
	for _, generation := range s.records {
		var list []Member
		for _, r := range generation {
			m := Member{Score: sign * float64(r.Score), Values: r.Values, Parent: r.Parent}
			if r.Dir == "" {
				m.Score = math.NaN()
			}
			list = append(list, m)
		}
		history = append(history, list)
	}
	return history
}

// dirOf is the run directory of a member's generation, relative to that of the search.
func dirOf(generation, member int) string {
	return filepath.Join(fmt.Sprintf("generation-%04d", generation), fmt.Sprintf("member-%03d", member))
}

// train trains the generation of a member that a record describes, of the experiment of that
// generation, or goes on with it, and fills in what has come of it. One that has diverged is rolled
// back.
func (s *Search) train(ctx context.Context, doc *configs.Document, r *Record) error {
	dir := filepath.Join(s.ledger.Dir, dirOf(r.Generation, r.Member))
	res, err := s.interval(ctx, doc, r, dir)
	if errors.Is(err, checkpoint.ErrCorrupt) && ctx.Err() == nil {
		// Its own: what it goes on from was looked at before.
		s.o.Note(fmt.Sprintf("generation %d, member %d: %v: it is trained again from its parent", r.Generation, r.Member, err))
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		res, err = s.interval(ctx, doc, r, dir)
	}
	var diverged *agents.DivergedError
	var gradient *optim.NonFiniteError
	switch {
	case errors.As(err, &diverged):
		return s.rollBack(r, diverged)
	case errors.As(err, &gradient):
		return s.rollBack(r, gradient)
	}
	if err != nil {
		return err
	}
	r.EnvSteps, r.Dir = res.EnvSteps, filepath.ToSlash(dirOf(r.Generation, r.Member))
	if score, ok := res.Last[s.c.Metric]; ok {
		r.Score = performance.Number(score)
	}
	c, err := checkpoint.Open(filepath.Join(dir, res.Checkpoint))
	if errors.Is(err, checkpoint.ErrCorrupt) {
		// It was finished before it was damaged.
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		return s.train(ctx, doc, r)
	}
	if err != nil {
		return err
	}
	r.SHA256, err = digest(c)
	return errors.Join(err, c.Close())
}

// interval trains what a record describes.
func (s *Search) interval(ctx context.Context, doc *configs.Document, r *Record, dir string) (res run.Result, err error) {
	sets, err := s.sets(r)
	if err != nil {
		return res, fmt.Errorf("generation %d, member %d: %w", r.Generation, r.Member, err)
	}
	j := run.Job{
		ID: fmt.Sprintf("%s/member-%03d", run.Label(s.ledger.Dir), r.Member), Group: s.ledger.Dir, Root: s.root,
		Config: string(doc.Bytes()), Sets: sets, Name: s.ledger.Name, Dir: dir, EnvSteps: s.c.IntervalSteps, Probe: s.c.Probe, NoPublish: true,
	}
	var steps int64
	if r.Parent >= 0 {
		p := s.records[r.Generation-1][r.Parent]
		steps = p.EnvSteps
		if j.Checkpoint, err = s.newest(p); err != nil {
			return res, err
		}
		// Learner steps are whole: what the parent took too much is not taken again.
		j.EnvSteps -= steps % s.c.IntervalSteps
	}
	if reached, err := run.Reached(dir); err == nil {
		steps = max(steps, reached)
	}
	o := s.o.Run
	if o.Replay = s.seat(r); !s.apart && o.Executor == nil {
		o.Factory = s.factory
	}
	if s.o.Steps != nil {
		o.Hooks.Progress = func(_ *run.Run, p train.Progress) {
			if n := p.EnvSteps - steps; n > 0 {
				s.o.Steps(n)
				steps = p.EnvSteps
			}
		}
	}
	return j.Train(ctx, s.o.Kinds, o)
}

// sets are the edits that make the experiment that of the member that a record is of.
func (s *Search) sets(r *Record) ([]string, error) {
	list, err := s.c.Space.Sets(r.Values)
	list = append(list, fmt.Sprint("seed=", r.Seed))
	if r.Skill != nil {
		list = append(list, fmt.Sprint("wrappers.skill.fixed=", *r.Skill))
	}
	if s.cfg.Replay != nil {
		list = append(list, fmt.Sprint("replay.policy=", s.policy(r)))
	}
	return list, err
}

// rollBack makes a member what its parent was.
func (s *Search) rollBack(r *Record, diverged error) error {
	r.RolledBack = diverged.Error()
	if r.Parent >= 0 {
		p := s.records[r.Generation-1][r.Parent]
		r.Values, r.EnvSteps, r.Score, r.Dir, r.SHA256 = p.Values, p.EnvSteps, p.Score, p.Dir, p.SHA256
	}
	s.o.Note(fmt.Sprintf("generation %d, member %d has diverged and is rolled back: %s", r.Generation, r.Member, r.RolledBack))
	return nil
}

// compare measures how far the policies of a generation lie apart.
func (s *Search) compare(list []Record) error {
	var actions [][]float64
	var of []int
	for i, r := range list {
		if s.c.Probe == 0 || r.RolledBack != "" {
			continue
		}
		var a []float64
		switch err := run.ReadJSON(filepath.Join(s.ledger.Dir, dirOf(r.Generation, r.Member), run.ProbeFile), &a); {
		case err == nil:
			actions, of = append(actions, a), append(of, i)
		case !errors.Is(err, os.ErrNotExist):
			return err
		}
	}
	_, each := s.actions.MAPD(actions)
	for k, i := range of {
		list[i].Distance = performance.Number(each[k])
	}
	return nil
}

// restore makes sure that a record's checkpoint is whole, and reports whether it was not: a damaged
// one is trained again, from the checkpoint of its parent, which gives the same bits.
func (s *Search) restore(ctx context.Context, r Record) (again bool, err error) {
	path, err := s.newest(r)
	if err == nil {
		var c *checkpoint.Checkpoint
		if c, err = checkpoint.Open(path); err == nil {
			return false, c.Close()
		}
	}
	owner, ok := s.owner(r)
	if !ok {
		return false, err
	}
	if s.store != nil {
		return false, fmt.Errorf("%w; with a shared replay it cannot be trained again from its parent, because the others have recorded more since", err)
	}
	g, m := owner.Generation, owner.Member
	s.o.Note(fmt.Sprintf("generation %d, member %d: %v: it is restored from its parent", g, m, err))
	if owner.Parent >= 0 {
		if _, err := s.restore(ctx, s.records[g-1][owner.Parent]); err != nil {
			return false, err
		}
	}
	if err := os.RemoveAll(filepath.Join(s.ledger.Dir, dirOf(g, m))); err != nil {
		return false, err
	}
	doc, err := s.edited(ctx, s.records[:g+1])
	if err != nil {
		return false, err
	}
	now := owner
	if err := s.train(ctx, doc, &now); err != nil {
		return false, err
	}
	if now.SHA256 != owner.SHA256 {
		return false, fmt.Errorf("generation %d, member %d: its checkpoint was damaged, and training it again gives another state: %s, expected %s", g, m, now.SHA256, owner.SHA256)
	}
	return true, nil
}

// newest is the directory of a record's checkpoint.
func (s *Search) newest(r Record) (string, error) {
	dir := filepath.Join(s.ledger.Dir, filepath.FromSlash(r.Dir), run.CheckpointDir)
	list, err := checkpoint.List(dir)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("%s: %w: there is none", dir, checkpoint.ErrCorrupt)
	}
	if err != nil {
		return "", err
	}
	return list[len(list)-1].Path, nil
}

// digest identifies the state that a checkpoint holds, whenever and by whom it was saved.
func digest(c *checkpoint.Checkpoint) (string, error) {
	// Maps are written in the order of their keys.
	text, err := json.Marshal([]any{c.Step, c.Files, c.Sections})
	return fmt.Sprintf("%x", sha256.Sum256(text)), err
}

// clear removes the checkpoints that nobody can go on from any more: the last two generations go on
// from theirs, the older of which is what the newer can be restored from.
func (s *Search) clear() error {
	old := len(s.records) - 2
	if old < 1 {
		return nil
	}
	needed := map[string]bool{}
	for _, generation := range s.records[old:] {
		for _, r := range generation {
			needed[r.Dir] = true
		}
	}
	from := s.cleared
	s.cleared = old
	for g := from; g < old; g++ {
		for _, r := range s.records[g] {
			dir := dirOf(g, r.Member)
			if r.RolledBack == "" && needed[r.Dir] {
				// It is looked at again with the next generation.
				s.cleared = min(s.cleared, g)
				continue
			}
			for _, name := range []string{run.CheckpointDir, run.TensorBoardDir} {
				if err := os.RemoveAll(filepath.Join(s.ledger.Dir, dir, name)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
