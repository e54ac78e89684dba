package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The kinds of rows.
const (
	kindTransition = 0
	// kindFinal is an episode's final observation, kindNext the observation after the chunk's last
	// transition.
	kindFinal = 1
	kindNext  = 2
)

// filed is a column of a file.
type filed struct {
	*part
	name string
}

// parts lists the columns of the rows in the order of a file.
func (s *Shared) parts() []filed {
	var list []filed
	for f := range s.obs {
		list = append(list, filed{&s.obs[f], "obs." + s.obs[f].col.Name})
	}
	if s.mask.size > 0 {
		list = append(list, filed{&s.mask, "mask"})
	}
	list = append(list, filed{&s.rows.action, "action"}, filed{&s.reward, "reward"}, filed{&s.discount, "discount"})
	if s.logProb.size > 0 {
		list = append(list, filed{&s.logProb, "log_prob"})
	}
	list = append(list, filed{&s.time, s.time.col.Name})
	for _, p := range []*part{&s.logits, &s.skill, &s.cost} {
		if p.size > 0 {
			list = append(list, filed{p, p.col.Name})
		}
	}
	return list
}

// fileColumns describes columns for a form of files.
func fileColumns(parts []filed) []FileColumn {
	list := make([]FileColumn, len(parts))
	for i, p := range parts {
		list[i] = FileColumn{Name: p.name, DType: p.col.DType, Shape: p.col.Shape, Size: p.size}
		if p.window != nil {
			list[i].WindowRows = p.window.Table().Shape()[0]
		}
	}
	return list
}

// spill writes chunks that do not change to one file, those that are not in one already. After an
// error there is no file.
func (s *Shared) spill(chunks []int) error {
	list := slices.DeleteFunc(slices.Clone(chunks), func(k int) bool {
		_, n := s.chunks[k].rows()
		return s.chunks[k].disk || n == 0
	})
	if len(list) == 0 {
		return nil
	}
	first, last, transitions := int64(math.MaxInt64), int64(0), 0
	for _, k := range list {
		filled, n := s.chunks[k].rows()
		transitions += n
		for row := k << s.shift; row < k<<s.shift+filled; row++ {
			if !s.isFinal(row) {
				t := s.timeOf(row)
				first, last = min(first, t), max(last, t)
			}
		}
	}
	path := filepath.Join(s.c.Dir, fmt.Sprintf("replay-%015d-%015d%s", first, last, s.c.Format.Suffix()))
	if err := atomicfile.WriteFileOn(s.c.Disk, path, func(w io.Writer) error {
		return s.c.Format.Write(w, fileColumns(s.parts()), func(yield func(Chunk) bool) {
			for _, k := range list {
				if !yield(s.chunkOf(k)) {
					return
				}
			}
		})
	}); err != nil {
		return fmt.Errorf("replay: spill %d transitions to %s: %w; they stay in memory", transitions, path, err)
	}
	s.spilled.Files++
	s.spilled.Transitions += transitions
	return nil
}

func (s *Shared) timeOf(row int) int64 {
	return int64(binary.LittleEndian.Uint64(s.row(row)[s.time.off:]))
}

// chunkOf copies a chunk, with the kinds of its rows and the observation after its last transition.
func (s *Shared) chunkOf(k int) Chunk {
	base := k << s.shift
	n, _ := s.chunks[k].rows()
	kinds := make([]byte, n, n+1)
	for i := range kinds {
		if s.isFinal(base + i) {
			kinds[i] = kindFinal
		}
	}
	if n > 0 && kinds[n-1] == kindTransition {
		kinds = append(kinds, kindNext)
		n++
	}
	c := Chunk{Kind: kinds, Policy: make([]byte, 4*n)}
	for _, p := range s.parts() {
		b := make([]byte, n*p.size)
		for r := range n {
			copy(b[r*p.size:], s.row(base + r)[p.off:p.off+p.size])
		}
		c.Columns = append(c.Columns, b)
	}
	for r := range n {
		binary.LittleEndian.PutUint32(c.Policy[4*r:], uint32(s.chunks[k].policy))
	}
	return c
}

// Files lists the files that chunks were spilled to, oldest first.
func (s *Shared) Files() ([]string, error) {
	if s.c.Dir == "" {
		return nil, nil
	}
	list, err := filepath.Glob(filepath.Join(s.c.Dir, "replay-*"+s.c.Format.Suffix()))
	slices.Sort(list)
	return list, err
}

// Flush writes all sealed chunks that are in no file yet, which stay in memory too.
func (s *Shared) Flush() error {
	if s.c.Dir == "" {
		return errors.New("replay: flush: the store has no folder")
	}
	s.evicting.Lock()
	defer s.evicting.Unlock()
	s.mu.RLock()
	list := slices.Clone(s.queue)
	s.mu.RUnlock()
	for part := range slices.Chunk(list, s.c.FileChunks) {
		if err := s.spill(part); err != nil {
			return err
		}
		s.mu.Lock()
		for _, k := range part {
			s.chunks[k].disk = true
		}
		s.mu.Unlock()
	}
	return nil
}

// Reload reads the chunks of a file into the store, where they take the place of the oldest ones if
// there is no room, and returns the number of transitions. They keep their policies and times. A
// file of another layout, or a damaged one, is an error, and nothing of the chunk where it was
// found is kept.
func (s *Shared) Reload(path string) (transitions int, err error) {
	fail := func(err error) (int, error) {
		return transitions, fmt.Errorf("replay: reload %s: %w", path, err)
	}
	if s.c.Format == nil {
		return fail(errors.New("the store has no format of files"))
	}
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	if err := s.c.Format.Read(f, info.Size(), fileColumns(s.parts()), func(c Chunk) error {
		n, err := s.adopt(c)
		transitions += n
		return err
	}); err != nil {
		return fail(err)
	}
	return transitions, nil
}

// adopt makes a chunk of the store of one of a file.
func (s *Shared) adopt(c Chunk) (transitions int, err error) {
	n, parts := len(c.Kind), s.parts()
	if n < 2 || n > s.c.ChunkRows {
		return 0, fmt.Errorf("%d rows, expected 2 to %d: chunks of the store have as many", n, s.c.ChunkRows)
	}
	columns, policy, kinds := c.Columns, c.Policy, c.Kind
	for r, kind := range kinds {
		if kind > kindNext || kind == kindNext && r < n-1 || kind == kindTransition && r == n-1 || string(policy[4*r:4*r+4]) != string(policy[:4]) {
			return 0, fmt.Errorf("row %d: kind %d of policy %d does not fit a chunk of %d rows of policy %d", r, kind, binary.LittleEndian.Uint32(policy[4*r:]), n, binary.LittleEndian.Uint32(policy))
		}
		if kind == kindTransition {
			transitions++
		}
	}
	if err := s.sound(parts, columns, kinds); err != nil {
		return 0, err
	}
	k, err := s.take(int32(binary.LittleEndian.Uint32(policy)))
	if err != nil {
		return 0, err
	}
	base, latest := k<<s.shift, int64(0)
	for r, kind := range kinds {
		row := s.row(base + r)
		for i, p := range parts {
			copy(row[p.off:p.off+p.size], columns[i][r*p.size:])
		}
		if kind == kindFinal {
			s.setFinal(base + r)
		} else if kind == kindTransition {
			latest = max(latest, s.timeOf(base+r)+1)
		}
	}
	for now := s.clock.Load(); now < latest && !s.clock.CompareAndSwap(now, latest); now = s.clock.Load() {
	}
	if kinds[n-1] == kindNext {
		n--
	}
	s.chunks[k].publish(n, transitions)
	s.mu.Lock()
	s.sealLocked(k)
	s.chunks[k].disk = true
	s.version++
	s.mu.Unlock()
	return transitions, nil
}

// sound checks what samples rely on: windows that exist, masks that are true or false, and rewards
// and discounts that are numbers.
func (s *Shared) sound(parts []filed, columns [][]byte, kinds []byte) error {
	for i, p := range parts {
		for r, kind := range kinds {
			if err := s.soundRow(p, columns[i][r*p.size:(r+1)*p.size], kind == kindTransition); err != nil {
				return fmt.Errorf("row %d: column %q: %w", r, p.name, err)
			}
		}
	}
	return nil
}

func (s *Shared) soundRow(p filed, b []byte, transition bool) error {
	switch {
	case p.window != nil:
		if last := int(int32(binary.LittleEndian.Uint32(b))); last < p.window.Len()-1 || last >= p.window.Table().Shape()[0] {
			return fmt.Errorf("a window that ends with row %d of %d", last, p.window.Table().Shape()[0])
		}
	case p.col.DType == tensor.Bool:
		if i := slices.IndexFunc(b, func(x byte) bool { return x > 1 }); i >= 0 {
			return fmt.Errorf("element %d is %d, neither true nor false", i, b[i])
		}
	case !transition:
	case p.part == &s.reward || p.part == &s.cost:
		for off := 0; off < len(b); off += 4 {
			if x := float32At(b, off); x-x != 0 {
				return fmt.Errorf("it is %g, expected a finite number", x)
			}
		}
	case p.part == &s.logProb:
		return agents.CheckLogProb(s.action.col.DType, float64(float32At(b, 0)))
	case p.part == &s.discount:
		if x := float32At(b, 0); !(x >= 0 && x <= 1) {
			return fmt.Errorf("the discount is %g", x)
		}
	case p.part == &s.time:
		if t := int64(binary.LittleEndian.Uint64(b)); t < 0 || t == math.MaxInt64 {
			return fmt.Errorf("the time is %d", t)
		}
	}
	return nil
}
