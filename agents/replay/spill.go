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

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/columnar"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// On disk a chunk is a record batch: a column for every column of the rows, fixed-size lists where
// there are several elements, a window as the number of its last row, and beside them the policy
// and the kind of the row. The observation that follows a transition is in the next row.
const (
	policyColumn = "policy"
	kindColumn   = "kind"

	kindTransition = 0
	// kindFinal is an episode's final observation, kindNext the observation after the chunk's last
	// transition.
	kindFinal = 1
	kindNext  = 2

	// spillPattern is the name of a file, with the times of its first and last transition.
	spillPattern = "replay-*.arrow"
)

// arrowTypes are the element types of columns.
var arrowTypes = map[tensor.DType]arrow.DataType{
	tensor.Float32: arrow.PrimitiveTypes.Float32, tensor.Float64: arrow.PrimitiveTypes.Float64, tensor.Bool: arrow.PrimitiveTypes.Uint8,
	tensor.Int8: arrow.PrimitiveTypes.Int8, tensor.Int16: arrow.PrimitiveTypes.Int16, tensor.Int32: arrow.PrimitiveTypes.Int32, tensor.Int64: arrow.PrimitiveTypes.Int64,
	tensor.Uint8: arrow.PrimitiveTypes.Uint8, tensor.Uint16: arrow.PrimitiveTypes.Uint16, tensor.Uint32: arrow.PrimitiveTypes.Uint32, tensor.Uint64: arrow.PrimitiveTypes.Uint64,
}

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

// field describes a column of a file.
func (p filed) field() (arrow.Field, error) {
	f := arrow.Field{Name: p.name, Metadata: arrow.MetadataFrom(map[string]string{"shape": fmt.Sprint(p.col.Shape)})}
	if p.window != nil {
		f.Type = arrow.PrimitiveTypes.Int32
		f.Metadata = arrow.MetadataFrom(map[string]string{"shape": fmt.Sprint(p.col.Shape), "window_rows": fmt.Sprint(p.window.Table().Shape()[0])})
		return f, nil
	}
	t, ok := arrowTypes[p.col.DType]
	if !ok {
		return f, fmt.Errorf("column %q: files cannot have elements of type %v", p.name, p.col.DType)
	}
	if f.Type = t; len(p.col.Shape) > 0 {
		f.Type = arrow.FixedSizeListOfNonNullable(int32(lenOf(p.col.Shape)), t)
	}
	return f, nil
}

// fields describes all columns of a file.
func (s *Shared) fields() ([]arrow.Field, error) {
	var list []arrow.Field
	for _, p := range s.parts() {
		f, err := p.field()
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return append(list, arrow.Field{Name: policyColumn, Type: arrow.PrimitiveTypes.Int32}, arrow.Field{Name: kindColumn, Type: arrow.PrimitiveTypes.Uint8}), nil
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
	path := filepath.Join(s.c.Dir, fmt.Sprintf("replay-%015d-%015d.arrow", first, last))
	if err := atomicfile.WriteFileOn(s.c.Disk, path, func(w io.Writer) error { return s.write(w, list) }); err != nil {
		return fmt.Errorf("replay: spill %d transitions to %s: %w; they stay in memory", transitions, path, err)
	}
	s.spilled.Files++
	s.spilled.Transitions += transitions
	return nil
}

func (s *Shared) timeOf(row int) int64 {
	return int64(binary.LittleEndian.Uint64(s.row(row)[s.time.off:]))
}

// positioned is a writer that knows how much was written, which is all that Arrow asks of a seeker.
type positioned struct {
	w   io.Writer
	pos int64
}

func (p *positioned) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.pos += int64(n)
	return n, err
}

func (p *positioned) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.ErrUnsupported
	}
	return p.pos, nil
}

// write writes chunks as an Arrow IPC file.
func (s *Shared) write(w io.Writer, chunks []int) error {
	fields, err := s.fields()
	if err != nil {
		return err
	}
	schema := arrow.NewSchema(fields, nil)
	out, err := ipc.NewFileWriter(&positioned{w: w}, ipc.WithSchema(schema))
	if err != nil {
		return err
	}
	for _, k := range chunks {
		rec := s.record(schema, k)
		err := out.Write(rec)
		rec.Release()
		if err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return out.Close()
}

// record copies a chunk into a record batch.
func (s *Shared) record(schema *arrow.Schema, k int) arrow.Record {
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
	var cols []arrow.Array
	for i, p := range s.parts() {
		b := make([]byte, n*p.size)
		for r := range n {
			copy(b[r*p.size:], s.row(base + r)[p.off:p.off+p.size])
		}
		cols = append(cols, columnArray(schema.Field(i).Type, n, b))
	}
	policy := make([]byte, 4*n)
	for r := range n {
		binary.LittleEndian.PutUint32(policy[4*r:], uint32(s.chunks[k].policy))
	}
	cols = append(cols, columnArray(arrow.PrimitiveTypes.Int32, n, policy), columnArray(arrow.PrimitiveTypes.Uint8, n, kinds))
	rec := array.NewRecord(schema, cols, int64(n))
	for _, c := range cols {
		c.Release()
	}
	return rec
}

// columnArray makes an array of n rows over bytes.
func columnArray(t arrow.DataType, n int, b []byte) arrow.Array {
	buf := memory.NewBufferBytes(b)
	if l, ok := t.(*arrow.FixedSizeListType); ok {
		child := array.NewData(l.Elem(), n*int(l.Len()), []*memory.Buffer{nil, buf}, nil, 0, 0)
		defer child.Release()
		return array.MakeFromData(array.NewData(t, n, []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0, 0))
	}
	return array.MakeFromData(array.NewData(t, n, []*memory.Buffer{nil, buf}, nil, 0, 0))
}

// Files lists the files that chunks were spilled to, oldest first.
func (s *Shared) Files() ([]string, error) {
	if s.c.Dir == "" {
		return nil, nil
	}
	list, err := filepath.Glob(filepath.Join(s.c.Dir, spillPattern))
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
	f, err := os.Open(path)
	if err != nil {
		return fail(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fail(err)
	}
	file, err := columnar.OpenArrow(f, info.Size())
	if err != nil {
		return fail(err)
	}
	defer file.Close()
	want, err := s.fields()
	if err != nil {
		return fail(err)
	}
	if !slices.EqualFunc(file.Fields(), want, func(a, b arrow.Field) bool { return a.Equal(b) }) {
		return fail(fmt.Errorf("the file has columns %v, expected %v", file.Fields(), want))
	}
	for i := range file.Batches() {
		rec, err := file.Batch(i)
		if err != nil {
			return fail(err)
		}
		n, err := s.adopt(rec)
		rec.Release()
		if err != nil {
			return fail(fmt.Errorf("record batch %d: %w", i, err))
		}
		transitions += n
	}
	return transitions, nil
}

// bytesOf returns the bytes of an array whose rows have size bytes.
func bytesOf(a arrow.Array, size int) ([]byte, error) {
	d := a.Data()
	off := d.Offset()
	if l, ok := a.(*array.FixedSizeList); ok {
		d = l.ListValues().Data()
		if d.Offset() != 0 {
			return nil, errors.New("a list that begins within its values")
		}
	}
	// NullN of the array itself would count, in a bitmap that a damaged file does not have.
	if a.Data().NullN() != 0 || len(d.Buffers()) < 2 || d.Buffers()[1] == nil && a.Len()*size > 0 {
		return nil, errors.New("values are missing")
	}
	if a.Len()*size == 0 {
		return nil, nil
	}
	b := d.Buffers()[1].Bytes()
	if len(b) < (off+a.Len())*size {
		return nil, fmt.Errorf("%d bytes, expected %d", len(b), (off+a.Len())*size)
	}
	return b[off*size : (off+a.Len())*size], nil
}

// adopt makes a chunk of a record batch.
func (s *Shared) adopt(rec arrow.Record) (transitions int, err error) {
	n, parts := int(rec.NumRows()), s.parts()
	if n < 2 || n > s.c.ChunkRows {
		return 0, fmt.Errorf("%d rows, expected 2 to %d: chunks of the store have as many", n, s.c.ChunkRows)
	}
	columns := make([][]byte, len(parts)+2)
	for i := range columns {
		size := map[int]int{len(parts): 4, len(parts) + 1: 1}[i]
		if i < len(parts) {
			size = parts[i].size
		}
		if columns[i], err = bytesOf(rec.Column(i), size); err != nil {
			return 0, fmt.Errorf("column %q: %w", rec.ColumnName(i), err)
		}
	}
	policy, kinds := columns[len(parts)], columns[len(parts)+1]
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
