package evolve

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// ReplayDir has the shared replay as it was after the last two generations.
const ReplayDir = "replay"

// Chunks of a shared replay: at most as many rows as published, and not so many that what a member
// leaves free at the end of a generation would be most of them.
const (
	leastChunk = 16
	mostChunk  = 1024
)

// spec describes one of the members' environments.
func (s *Search) spec() (envs.Spec, error) {
	e, err := s.factory.New(envs.Train, 0)
	if err != nil {
		return envs.Spec{}, err
	}
	spec := e.Spec()
	return spec, e.Close()
}

// layout is that of the transitions of members.
func (s *Search) layout() (l replay.Layout, err error) {
	spec, err := s.spec()
	var list []constraint.Config
	if v, ok := s.doc.Lookup("agent.constraints"); ok && err == nil {
		err = v.Decode(&list)
	}
	if err == nil {
		l, err = offpolicy.LayoutOf(spec, s.corrects(), list)
	}
	if err != nil {
		err = fmt.Errorf("replay: %w", err)
	}
	return l, err
}

// chunked is the configuration of the replay that members share.
func (s *Search) chunked() replay.SharedConfig {
	rows := leastChunk
	for want := s.c.IntervalSteps / int64(s.cfg.Train.NumEnvs); rows < mostChunk && int64(2*rows) <= want; rows *= 2 {
	}
	return replay.SharedConfig{Capacity: s.c.Replay.Capacity, ChunkRows: rows, Name: "members"}
}

// rounds are those of a member in a generation.
func (s *Search) rounds() int {
	envs := int64(s.cfg.Train.NumEnvs)
	return int((s.c.IntervalSteps + envs - 1) / envs)
}

// Together says where members train whose replay is in this process; empty where there is none.
func (s *Search) Together() string {
	if s.c.Replay.Capacity == 0 {
		return ""
	}
	return fmt.Sprintf("the %d members share a replay in this process (replay.capacity) and train in it, %d at once; processes share a server's table (replay: {kind: flight} in the base)", s.c.Population, min(s.o.Parallel, s.c.Population))
}

// shares reports, before anything is trained, why members cannot share a replay.
func (s *Search) shares() error {
	if s.c.Replay.Capacity == 0 {
		return nil
	}
	if s.cfg.Replay != nil {
		return errors.New("replay.capacity: the base's replay is a server's table, which members share already")
	}
	if err := s.chunked().Divides(s.c.Population, s.cfg.Train.NumEnvs, s.rounds()); err != nil {
		return fmt.Errorf("replay.capacity: %w", err)
	}
	return nil
}

// Memory is a part of what a search takes of memory when its replays are full.
type Memory struct {
	What  string
	Bytes int
}

// Memory lists the replays and the tables that windows are of, which are most of what a search
// needs beside the program and its networks.
func (s *Search) Memory() (list []Memory, err error) {
	spec, err := s.spec()
	if err != nil {
		return nil, err
	}
	tables := 0
	for _, f := range spec.Observation {
		if f.Window != nil {
			tables += len(f.Window.Table().Bytes())
		}
	}
	if tables > 0 {
		list = append(list, Memory{"tables of windows", tables})
	}
	capacity := 0
	if v, ok := s.doc.Lookup("agent.buffer_size"); !ok || v.Decode(&capacity) != nil || s.cfg.Replay != nil {
		return list, nil // It has no replay of its own.
	}
	l, err := s.layout()
	if err != nil {
		return nil, err
	}
	if s.c.Replay.Capacity > 0 {
		n, err := s.chunked().Bytes(l)
		return append(list, Memory{fmt.Sprintf("replay of %d transitions", s.c.Replay.Capacity), n}), err
	}
	k := min(s.o.Parallel, s.c.Population)
	n, err := replay.Config{Capacity: capacity, Envs: s.cfg.Train.NumEnvs}.Bytes(l)
	return append(list, Memory{fmt.Sprintf("%d replays of %d transitions, of as many members at once", k, capacity), k * n}), err
}

// share opens the replay as it was before the next generation. What members have of it in this
// process already began with another one, and is removed.
func (s *Search) share() (err error) {
	if s.c.Replay.Capacity == 0 || s.store != nil {
		return nil
	}
	g := len(s.records)
	if err := os.RemoveAll(filepath.Join(s.ledger.Dir, filepath.Dir(dirOf(g, 0)))); err != nil {
		return err
	}
	l, err := s.layout()
	if err != nil {
		return err
	}
	store, err := replay.NewShared(l, s.chunked())
	if err != nil {
		return fmt.Errorf("replay.capacity: %w", err)
	}
	if g > 0 {
		err = s.load(store, g)
	}
	if err != nil {
		return errors.Join(err, store.Close())
	}
	s.store = store
	return nil
}

// corrects says whether members weigh what others did, which takes log-probabilities.
func (s *Search) corrects() bool {
	for _, key := range []string{"agent.sharing", "agent.vtrace.length"} {
		if v, ok := s.doc.Lookup(key); ok {
			var n int
			if v.Decode(&n) != nil || n > 0 {
				return true
			}
		}
	}
	return false
}

// load restores the replay as it was after g generations.
func (s *Search) load(store *replay.Shared, g int) error {
	list, err := checkpoint.List(filepath.Join(s.ledger.Dir, ReplayDir))
	if err != nil {
		return err
	}
	for _, x := range list {
		if x.Step != int64(g) {
			continue
		}
		c, err := checkpoint.Open(x.Path)
		if err != nil {
			return fmt.Errorf("the shared replay: %w", err)
		}
		return errors.Join(c.Load(store), c.Close())
	}
	return fmt.Errorf("%s has no replay of after %d generations", filepath.Join(s.ledger.Dir, ReplayDir), g)
}

// divide gives each member of the next generation its section of the replay: members train at once,
// and each draws what there was before and what it has done itself.
func (s *Search) divide() (err error) {
	if s.store == nil {
		return nil
	}
	if s.sections, err = s.store.Divide(s.c.Population, s.cfg.Train.NumEnvs, s.rounds()); err != nil {
		return fmt.Errorf("replay.capacity: %w", err)
	}
	return nil
}

// shared saves the replay of a generation that has ended, before that is recorded: whoever goes on
// takes the one of as many generations as there are records of.
func (s *Search) shared() error {
	if s.store == nil {
		return nil
	}
	s.store.Unite()
	to, err := checkpoint.OpenStore(filepath.Join(s.ledger.Dir, ReplayDir), checkpoint.Options{KeepLast: 2})
	if err != nil {
		return err
	}
	_, err = to.Save(checkpoint.Meta{Kind: "replay", Step: int64(len(s.records) + 1)}, s.store)
	return errors.Join(err, to.Close())
}

// unshare closes the replay: one in the middle of a generation is of no use to anybody.
func (s *Search) unshare() error {
	if s.store == nil {
		return nil
	}
	err := s.store.Close()
	s.store = nil
	return err
}

// seat is the place in the shared replay of the member that a record is of; nil without one.
func (s *Search) seat(r *Record) func(*run.Run) (agents.Replay, error) {
	if s.store == nil {
		return nil
	}
	policy := s.policy(r)
	return func(*run.Run) (agents.Replay, error) {
		return s.sections[r.Member].Member(fmt.Sprintf("member-%03d", r.Member), int32(policy), replay.SamplerConfig{}), nil
	}
}

// policy is the number by which a replay knows the member that a record is of. A member that has
// restarted is another policy than before: records of the earlier one are not its own.
func (s *Search) policy(r *Record) int {
	policy := r.Member
	for _, list := range s.records {
		if list[r.Member].Action == Restart {
			policy += s.c.Population
		}
	}
	if r.Action == Restart {
		policy += s.c.Population
	}
	return policy
}
