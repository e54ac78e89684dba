package replay

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// SharedConfig describes a [Shared] store.
type SharedConfig struct {
	// Capacity is the number of transitions, rounded up to whole chunks. The final observation of
	// an episode takes the place of one, and so does the end of a chunk.
	Capacity int
	// ChunkRows is the number of rows of a chunk, a power of two; 0 means 1024. Samples of several
	// steps, and sequences, do not go beyond a chunk.
	ChunkRows int
	// Name is the store's identity, which learners' checkpoints have in the place of transitions.
	Name string
	// Dir is where chunks go, in files of Format, before they are overwritten; "" drops them.
	// FileChunks is the number of chunks of a file; 0 means 64, or a quarter of all where those are
	// fewer.
	Dir        string
	Format     Format
	FileChunks int
	// Disk is what Dir lies on; nil is the operating system's.
	Disk atomicfile.Disk
}

// Shared is the store of a population: many writers put transitions of their policies into it, and
// many samplers draw from all of them. It is safe for concurrent use; each [Writer] and each
// [Sampler] belongs to one goroutine.
//
// Rows lie in chunks. A chunk belongs to one environment of one writer until it is full, so that
// writers meet only when they take another one, and the row after a transition has its following
// observation. Readers see a chunk's rows up to a number that its writer raises when they are
// complete.
type Shared struct {
	c SharedConfig
	l Layout
	*rows
	shift int
	// finals has a bit for each row that is a final observation.
	finals []atomic.Uint64
	chunks []chunk
	// clock counts the transitions that were ever recorded.
	clock atomic.Int64

	// mu is held by readers of rows; who locks it may take chunks away from them. It protects what
	// follows.
	mu sync.RWMutex
	// free lists the chunks without rows, queue the sealed ones in the order in which they were.
	free, queue []int
	version     int64
	streams     int
	writers     []*Writer
	// restored are writers of a checkpoint that nobody has opened yet.
	restored []savedWriter
	// ranked has the priorities of transitions; nil without.
	ranked *ranking
	// sections are those of Divide, nil without; section is that of each chunk, nil of those that
	// all read.
	sections []*Section
	section  []*Section
	// frozen is a moment that is being written, nil without.
	frozen *Moment

	// evicting is held while chunks are taken away; it protects what follows.
	evicting sync.Mutex
	oldest   []int
	spilled  Spilled
}

// chunk is a run of rows.
type chunk struct {
	// seen has the number of rows that readers may see, and in the lower half how many of them are
	// transitions.
	seen atomic.Uint64

	// Shared.mu protects the fields below.
	policy int32
	// used says that it is not free, sealed that nobody writes here any more, and disk that it lies
	// in a file already.
	used, sealed, disk bool
}

func (c *chunk) rows() (filled, transitions int) {
	x := c.seen.Load()
	return int(x >> 32), int(uint32(x))
}

func (c *chunk) publish(filled, transitions int) {
	c.seen.Store(uint64(filled)<<32 | uint64(transitions))
}

// chunks is the number of chunks of a store.
func (c SharedConfig) chunks() int { return max(2, (c.Capacity+c.ChunkRows-2)/(c.ChunkRows-1)) }

// each is the number of chunks of a section ([Shared.Divide]): a transition takes two rows at most,
// of which the last one of a chunk may remain.
func (c SharedConfig) each(envs, rounds int) int {
	return envs * max(2, (rounds+(c.ChunkRows-1)/2-1)/((c.ChunkRows-1)/2))
}

// Divides reports a capacity that is too small for the sections of so many members
// ([Shared.Divide]).
func (c SharedConfig) Divides(members, envs, rounds int) error {
	if need := members * c.each(envs, rounds); need > c.chunks() {
		return fmt.Errorf("is %d, expected at least %d, for %d members with %d environments take %d chunks of %d rows in %d rounds", c.Capacity, need*(c.ChunkRows-1), members, envs, need, c.ChunkRows, rounds)
	}
	return nil
}

// Bytes is the memory that a store takes when it is full. ChunkRows must be given.
func (c SharedConfig) Bytes(l Layout) (int, error) {
	r, err := placed(l, true)
	if err != nil {
		return 0, err
	}
	return c.chunks() * c.ChunkRows * r.stride, nil
}

// NewShared returns an empty store. Memory is mapped at once and used as it is filled.
func NewShared(l Layout, c SharedConfig) (*Shared, error) {
	if c.ChunkRows == 0 {
		c.ChunkRows = 1024
	}
	if c.Disk == nil {
		c.Disk = atomicfile.OS
	}
	if c.Capacity < 1 || c.ChunkRows < 4 || c.ChunkRows&(c.ChunkRows-1) != 0 || c.ChunkRows > math.MaxInt32 || c.FileChunks < 0 {
		return nil, fmt.Errorf("new shared replay: capacity %d, chunks of %d rows, files of %d chunks; expected a capacity of at least 1, and a power of two from 4 on", c.Capacity, c.ChunkRows, c.FileChunks)
	}
	if c.Dir != "" && c.Format == nil {
		return nil, fmt.Errorf("new shared replay: the folder %s without a format, expected one of files", c.Dir)
	}
	n := c.chunks()
	if c.FileChunks == 0 {
		c.FileChunks = max(1, min(64, n/4))
	}
	s := &Shared{c: c, l: l, shift: bits.TrailingZeros(uint(c.ChunkRows)), chunks: make([]chunk, n), section: make([]*Section, n), version: 1}
	var err error
	if s.rows, err = newRows(l, n*c.ChunkRows, true); err != nil {
		return nil, fmt.Errorf("new shared replay: %w", err)
	}
	s.finals = make([]atomic.Uint64, (s.rows.n+63)/64)
	s.free, s.queue, s.oldest = make([]int, 0, n), make([]int, 0, n), make([]int, 0, n)
	for k := n - 1; k >= 0; k-- {
		s.free = append(s.free, k)
	}
	return s, nil
}

// Close frees the rows. Nobody may use the store any more.
func (s *Shared) Close() error { return s.rows.close() }

// RowBytes is the memory of a row, which is a transition without the observation that follows.
func (s *Shared) RowBytes() int { return s.stride }

func (s *Shared) isFinal(row int) bool { return s.finals[row>>6].Load()>>(row&63)&1 != 0 }

// setFinal marks a row of a chunk that belongs to the caller; chunks do not share words unless they
// are shorter than one.
func (s *Shared) setFinal(row int) { s.finals[row>>6].Or(1 << (row & 63)) }

// take gives a chunk to a writer, and makes room if there is none. After an error, which is one of
// the disk, everything is as it was.
func (s *Shared) take(policy int32) (int, error) {
	for {
		s.mu.Lock()
		if n := len(s.free); n > 0 {
			k := s.free[n-1]
			s.free = s.free[:n-1]
			c := &s.chunks[k]
			c.policy, c.used = policy, true
			s.mu.Unlock()
			return k, nil
		}
		s.mu.Unlock()
		if err := s.makeRoom(1); err != nil {
			return 0, err
		}
	}
}

// seal says that nobody writes to a chunk any more.
func (s *Shared) seal(k int) {
	s.mu.Lock()
	s.sealLocked(k)
	s.mu.Unlock()
}

// sealLocked is seal for who has locked mu.
func (s *Shared) sealLocked(k int) {
	s.chunks[k].sealed = true
	if own := s.section[k]; own != nil {
		own.sealed = append(own.sealed, k)
		return
	}
	s.queue = append(s.queue, k)
}

// ErrNoChunk says that there is no room that is not being written to.
var ErrNoChunk = errors.New("all chunks are being written to; a larger capacity, or smaller chunks, would help")

// makeRoom frees the oldest sealed chunks, so that at least so many are free, after they were
// written to a file if there is a folder for that.
func (s *Shared) makeRoom(least int) error {
	s.evicting.Lock()
	defer s.evicting.Unlock()
	s.mu.RLock()
	lacks := least - len(s.free)
	s.oldest = append(s.oldest[:0], s.queue[:min(len(s.queue), max(lacks, s.batch()))]...)
	s.mu.RUnlock()
	if lacks <= 0 {
		// Somebody else was faster.
		return nil
	}
	if len(s.oldest) < lacks {
		return fmt.Errorf("replay: %w", ErrNoChunk)
	}
	if s.c.Dir != "" {
		// Sealed chunks do not change, and who might take them away waits for evicting.
		if err := s.spill(s.oldest); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range slices.Backward(s.oldest) {
		s.clear(k)
	}
	s.queue = slices.Delete(s.queue, 0, len(s.oldest))
	s.version++
	return nil
}

// batch is the number of chunks that are freed at once.
func (s *Shared) batch() int {
	if s.c.Dir == "" {
		return 1
	}
	return s.c.FileChunks
}

// clear frees a chunk. The caller has locked mu.
func (s *Shared) clear(k int) {
	s.empty(k)
	s.free = append(s.free, k)
}

// empty takes the rows of a chunk away. The caller has locked mu.
func (s *Shared) empty(k int) {
	if s.frozen != nil {
		s.frozen.keep(k)
	}
	c := &s.chunks[k]
	c.publish(0, 0)
	if s.ranked != nil {
		s.ranked.drop(k<<s.shift, (k+1)<<s.shift)
	}
	c.used, c.sealed, c.disk = false, false, false
	for row := k << s.shift; row < (k+1)<<s.shift; row++ {
		s.finals[row>>6].And(^uint64(1 << (row & 63)))
	}
}

// SharedStats describes what a store holds.
type SharedStats struct {
	// Transitions is the number of transitions, Policies that of each policy.
	Transitions int
	Policies    map[int32]int
	// Recorded is the number of transitions that were ever recorded, Bytes the memory of the rows
	// that are in use.
	Recorded int64
	Bytes    int
	// Chunks is the number of chunks, Free that of those without rows.
	Chunks, Free int
	Spilled      Spilled
}

// Spilled counts what went to disk.
type Spilled struct {
	Files, Transitions int
}

// Stats describes what the store holds at a moment.
func (s *Shared) Stats() SharedStats {
	s.evicting.Lock()
	spilled := s.spilled
	s.evicting.Unlock()
	s.mu.RLock()
	defer s.mu.RUnlock()
	st := SharedStats{Policies: map[int32]int{}, Recorded: s.clock.Load(), Chunks: len(s.chunks), Free: len(s.free), Spilled: spilled}
	for k := range s.chunks {
		if c := &s.chunks[k]; c.used {
			filled, n := c.rows()
			st.Transitions += n
			st.Policies[c.policy] += n
			st.Bytes += filled * s.stride
		}
	}
	return st
}

// Len returns the number of transitions.
func (s *Shared) Len() int { return s.lenOf(nil) }

// lenOf is the number of transitions that a section reads; without one all count.
func (s *Shared) lenOf(own *Section) (n int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for k := range s.chunks {
		if own != nil && !own.reads(k) {
			continue
		}
		_, m := s.chunks[k].rows()
		n += m
	}
	return n
}
