package replay

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/onnxrl/onnxrl/models/checkpoint"
)

var _ checkpoint.Stater = (*Shared)(nil)

// savedShared is what a store carries beside its rows.
type savedShared struct {
	Columns   []savedColumn `json:"columns"`
	Stride    int           `json:"stride"`
	ChunkRows int           `json:"chunk_rows"`
	Clock     int64         `json:"clock"`
	Free      []int         `json:"free"`
	Queue     []int         `json:"queue"`
	Chunks    []savedChunk  `json:"chunks"`
	Writers   []savedWriter `json:"writers"`
	Spilled   Spilled       `json:"spilled"`
}

type savedChunk struct {
	Policy      int32 `json:"policy"`
	Filled      int   `json:"filled"`
	Transitions int   `json:"transitions"`
	Disk        bool  `json:"disk"`
}

type savedWriter struct {
	// Name is empty in checkpoints of programs whose writers had none.
	Name   string       `json:"name,omitempty"`
	Policy int32        `json:"policy"`
	Places []savedPlace `json:"places"`
}

type savedPlace struct {
	Chunk int `json:"chunk"`
	Row   int `json:"row"`
}

var errDivided = errors.New("replay: the store is divided; its state is saved after it is united")

var errWriting = errors.New("replay: a round is being recorded; state is saved and restored between rounds")

// SaveState implements checkpoint.Stater. Only what is filled is saved. Nobody may write until the
// checkpoint is complete, because arrays are not copied; see [Shared.Moment].
func (s *Shared) SaveState(w *checkpoint.Writer) error {
	s.evicting.Lock()
	defer s.evicting.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	out, err := s.saved()
	if err != nil {
		return err
	}
	for k := range s.chunks {
		if rows := s.rowsOf(k); rows > 0 {
			w.Scope("rows").PutBytes(strconv.Itoa(k), s.chunkBytes(k, rows), rows, s.stride)
		}
	}
	w.PutUint64s("finals", s.finalWords())
	if s.ranked != nil {
		s.ranked.copied(false).save(w)
	}
	w.PutJSON("shared", out)
	return nil
}

// rowsOf is the number of rows of a chunk that are saved, 0 of one that is free: the row after the
// last one has the observation that followed.
func (s *Shared) rowsOf(k int) int {
	c := &s.chunks[k]
	if !c.used {
		return 0
	}
	filled, _ := c.rows()
	return min(filled+1, s.c.ChunkRows)
}

// chunkBytes are the first rows of a chunk.
func (s *Shared) chunkBytes(k, rows int) []byte { return s.data[k<<s.shift*s.stride:][:rows*s.stride] }

// finalWords copies the bits of the rows that are final observations.
func (s *Shared) finalWords() []uint64 {
	finals := make([]uint64, len(s.finals))
	for i := range finals {
		finals[i] = s.finals[i].Load()
	}
	return finals
}

// saved describes the store without its rows. The caller has locked evicting and mu.
func (s *Shared) saved() (savedShared, error) {
	out := savedShared{Columns: s.columns(), Stride: s.stride, ChunkRows: s.c.ChunkRows, Clock: s.clock.Load(), Free: slices.Clone(s.free), Queue: slices.Clone(s.queue), Spilled: s.spilled}
	if s.sections != nil {
		return out, errDivided
	}
	for _, x := range s.writers {
		if x.open {
			return out, errWriting
		}
		v := savedWriter{Name: x.name, Policy: x.policy}
		for _, p := range x.at {
			v.Places = append(v.Places, savedPlace{p.chunk, p.row})
		}
		out.Writers = append(out.Writers, v)
	}
	out.Writers = append(out.Writers, s.restored...)
	for k := range s.chunks {
		c := &s.chunks[k]
		filled, n := c.rows()
		out.Chunks = append(out.Chunks, savedChunk{c.policy, filled, n, c.disk})
	}
	// Samplers renew their lists here, as those do that are made when the checkpoint is restored.
	s.version++
	return out, nil
}

// LoadState implements checkpoint.Stater. Writers that are open, and those that will be, go on
// where the checkpoint's of their name were; one that it does not have begins.
func (s *Shared) LoadState(r *checkpoint.Reader) error {
	var in savedShared
	if err := r.JSON("shared", &in); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Stride != s.stride || in.ChunkRows != s.c.ChunkRows || len(in.Chunks) != len(s.chunks) || !same(in.Columns, s.columns()) {
		return fmt.Errorf("replay: restore: the checkpoint has %d chunks of %d rows with columns %v; expected %d of %d with %v", len(in.Chunks), in.ChunkRows, in.Columns, len(s.chunks), s.c.ChunkRows, s.columns())
	}
	finals := make([]uint64, len(s.finals))
	if err := r.Uint64sInto("finals", finals); err != nil {
		return err
	}
	for i, x := range finals {
		s.finals[i].Store(x)
	}
	free, sealed := make([]bool, len(s.chunks)), make([]bool, len(s.chunks))
	for _, list := range []struct {
		in   []int
		mark []bool
	}{{in.Free, free}, {in.Queue, sealed}} {
		for _, k := range list.in {
			if k < 0 || k >= len(free) || free[k] || sealed[k] {
				return fmt.Errorf("replay: restore: chunk %d is free or sealed twice, or does not exist", k)
			}
			list.mark[k] = true
		}
	}
	for k, c := range in.Chunks {
		if c.Filled < 0 || c.Filled > s.c.ChunkRows || free[k] && c.Filled > 0 {
			return fmt.Errorf("replay: restore: chunk %d has %d of %d rows", k, c.Filled, s.c.ChunkRows)
		}
		n := 0
		for row := k << s.shift; row < k<<s.shift+c.Filled; row++ {
			if !s.isFinal(row) {
				n++
			}
		}
		if n != c.Transitions {
			return fmt.Errorf("replay: restore: chunk %d has %d transitions, expected %d", k, n, c.Transitions)
		}
		if !free[k] {
			rows := min(c.Filled+1, s.c.ChunkRows)
			if err := r.Scope("rows").BytesInto(strconv.Itoa(k), s.data[k<<s.shift*s.stride:][:rows*s.stride], rows, s.stride); err != nil {
				return err
			}
		}
		d := &s.chunks[k]
		d.policy, d.used, d.sealed, d.disk = c.Policy, !free[k], sealed[k], c.Disk
		d.publish(c.Filled, c.Transitions)
	}
	if s.ranked != nil {
		if err := s.ranked.LoadState(r); err != nil {
			return err
		}
	}
	s.clock.Store(in.Clock)
	s.free, s.queue, s.restored, s.spilled = append(s.free[:0], in.Free...), append(s.queue[:0], in.Queue...), in.Writers, in.Spilled
	s.version++
	for _, w := range s.writers {
		if w.open {
			return errWriting
		}
		for e := range w.at {
			w.at[e] = place{chunk: -1}
		}
		if err := w.resume(); err != nil {
			return err
		}
	}
	return nil
}

// Missing lists the writers of the restored checkpoint that nobody has opened yet, by name. Their
// chunks wait for them, and are saved again; Drop gives them up.
func (s *Shared) Missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, v := range s.restored {
		list = append(list, v.Name)
	}
	slices.Sort(list)
	return list
}

// Drop gives up the chunks of writers that are missing, as closing them would have done; their
// transitions stay. A name that is not missing is an error, and changes nothing.
func (s *Shared) Drop(names ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if !slices.ContainsFunc(s.restored, func(v savedWriter) bool { return v.Name == name }) {
			return fmt.Errorf("replay: drop: no writer %q of the checkpoint is missing", name)
		}
	}
	s.restored = slices.DeleteFunc(s.restored, func(v savedWriter) bool {
		if !slices.Contains(names, v.Name) {
			return false
		}
		for _, p := range v.Places {
			if p.Chunk >= 0 && p.Chunk < len(s.chunks) && s.chunks[p.Chunk].used && !s.chunks[p.Chunk].sealed {
				s.sealLocked(p.Chunk)
			}
		}
		return true
	})
	return nil
}

// resume continues where the saved writer of the same name was, if there is one. In checkpoints
// whose writers have no names, it is the first of the policy and the number of environments. The
// caller has locked the store's mu.
func (w *Writer) resume() error {
	s := w.s
	i := slices.IndexFunc(s.restored, func(v savedWriter) bool { return v.Name == w.name })
	if i < 0 {
		i = slices.IndexFunc(s.restored, func(v savedWriter) bool { return v.Name == "" && v.Policy == w.policy && len(v.Places) == len(w.at) })
	}
	if i < 0 {
		return nil
	}
	v := s.restored[i]
	if v.Policy != w.policy || len(v.Places) != len(w.at) {
		return fmt.Errorf("replay: restore: the checkpoint's writer %q is of policy %d in %d environments, expected %d in %d", w.name, v.Policy, len(v.Places), w.policy, len(w.at))
	}
	for e, p := range v.Places {
		if p.Chunk < 0 {
			continue
		}
		if p.Chunk >= len(s.chunks) || s.chunks[p.Chunk].sealed {
			return fmt.Errorf("replay: restore: environment %d of writer %q writes to chunk %d, which is not open", e, w.name, p.Chunk)
		}
		filled, n := s.chunks[p.Chunk].rows()
		if p.Row != p.Chunk<<s.shift+filled {
			return fmt.Errorf("replay: restore: environment %d of writer %q writes to row %d of chunk %d, which has %d", e, w.name, p.Row, p.Chunk, filled)
		}
		w.at[e] = place{p.Chunk, p.Row, n}
	}
	s.restored = slices.Delete(s.restored, i, i+1)
	return nil
}
