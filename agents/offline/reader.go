package offline

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
	"github.com/onnxrl/onnxrl/runtime/filehash"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Dataset is a data set on disk, opened.
type Dataset struct {
	Manifest
	// Dir is its folder, and Digest the SHA-256 of its manifest, which has those of the files.
	Dir, Digest string
}

// Open reads the manifest of a data set. Files are read by [Dataset.Each].
func Open(dir string) (*Dataset, error) {
	dir, err := objects.Local(dir)
	if err != nil {
		return nil, fmt.Errorf("data set: %w", err)
	}
	m, digest, err := readManifest(dir)
	if err != nil {
		return nil, err
	}
	return &Dataset{*m, dir, digest}, nil
}

// RowError says what is wrong with a row of a file.
type RowError struct {
	File string
	// Row counts from 0; -1 is the file itself.
	Row  int64
	Text string
}

func (e *RowError) Error() string {
	if e.Row < 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Text)
	}
	return fmt.Sprintf("%s: row %d: %s", e.File, e.Row, e.Text)
}

// Each reads all episodes in their order. Of a file it has one row group in memory at a time, and
// the episode, which the next one overwrites. Rows that are out of order, or that lack what an
// episode needs, are a [*RowError].
func (d *Dataset) Each(ctx context.Context, do func(e *Episode) error) error {
	return d.each(ctx, do, func(e *RowError) error { return e })
}

// each is Each; where rows are wrong, wrong decides whether to go on without the episode.
func (d *Dataset) each(ctx context.Context, do func(e *Episode) error, wrong func(*RowError) error) error {
	first := int64(0)
	for _, f := range d.Files {
		r := &reader{d: d, file: f, next: first, e: d.newEpisode(), do: do, wrong: wrong}
		r.e.Behaviour = f.Behaviour
		if err := r.read(ctx); err != nil {
			return err
		}
		first += f.Episodes
	}
	return nil
}

// VerifyFiles compares the files with their digests.
func (d *Dataset) VerifyFiles(ctx context.Context) error {
	for _, f := range d.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(d.Dir, f.Name)
		sum, err := filehash.SHA256(path)
		if err != nil {
			return fmt.Errorf("data set: %w", err)
		}
		if sum != f.SHA256 {
			return &RowError{path, -1, fmt.Sprintf("its SHA-256 is %s, and that of the manifest %s", sum, f.SHA256)}
		}
	}
	return nil
}

// reader reads one file.
type reader struct {
	d     *Dataset
	file  File
	do    func(*Episode) error
	wrong func(*RowError) error
	// e is the episode that is read, next its number; broken says that it is left out.
	e      *Episode
	next   int64
	broken bool
	row    int64
	// transitions were read, and begun says that e has rows.
	transitions int64
	begun       bool
}

func (r *reader) read(ctx context.Context) (err error) {
	path := filepath.Join(r.d.Dir, r.file.Name)
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("data set: %w", err)
	}
	file, err := parquetfile.Open(f)
	if err != nil {
		return fmt.Errorf("data set: %s: %w", path, err)
	}
	// Closing a file that was read cannot lose anything.
	defer file.Close()
	fields := r.d.fields()
	at, err := places(fields, file.Names())
	if err != nil {
		return &RowError{path, -1, err.Error()}
	}
	first := r.next
	for g := range file.Groups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		data := make([][]byte, len(fields))
		for i, c := range fields {
			a, err := file.Column(g, at[i])
			if err != nil {
				return fmt.Errorf("data set: %s: %w", path, err)
			}
			data[i], err = bytesOf(c, a)
			a.Release()
			if err != nil {
				return &RowError{path, -1, fmt.Sprintf("row group %d: %v", g, err)}
			}
			c.inside(data[i])
		}
		if err := r.rows(path, file.Rows(g), fields, data); err != nil {
			return err
		}
	}
	switch {
	case r.begun:
		return r.wrong(&RowError{path, r.row, "the file ends within an episode"})
	case r.next-first != r.file.Episodes || r.transitions != r.file.Transitions:
		return r.wrong(&RowError{path, -1, fmt.Sprintf("%d episodes and %d transitions, and the manifest has %d and %d", r.next-first, r.transitions, r.file.Episodes, r.file.Transitions)})
	}
	return nil
}

// places finds the columns of a file.
func places(fields []column, names []string) ([]int, error) {
	at := map[string]int{}
	for i, n := range names {
		at[n] = i
	}
	var list []int
	for _, c := range fields {
		i, ok := at[c.name]
		if !ok {
			return nil, fmt.Errorf("there is no column %q; it has %q", c.name, names)
		}
		list = append(list, i)
	}
	return list, nil
}

// rows takes the rows of a group.
func (r *reader) rows(path string, n int, fields []column, data [][]byte) error {
	number, reward := int64s(data[0]), 3+len(r.d.Observation)
	if r.d.Mask > 0 {
		reward++
	}
	reward++ // Behind the action.
	rewards, discounts, logProbs := float64s(data[reward]), float64s(data[reward+1]), float64s(data[reward+4])
	var costs []float64
	if len(r.d.Costs) > 0 {
		costs = float64s(data[reward+5])
	}
	for i := range n {
		kind, step := data[2][i], int(int32(binary.LittleEndian.Uint32(data[1][4*i:])))
		if err := r.follows(path, number[i], step, kind); err != nil {
			return err
		}
		r.row++
		if r.broken {
			r.skip(kind)
			continue
		}
		r.begun = true
		e, k := r.e, 3
		for f := range r.d.Observation {
			size := fields[k].size()
			b := data[k][i*size : (i+1)*size]
			if r.d.Observation[f].Window != nil {
				e.Rows[f] = append(e.Rows[f], int64(binary.LittleEndian.Uint64(b)))
			} else {
				e.Obs[f] = append(e.Obs[f], b...)
			}
			k++
		}
		if m := r.d.Mask; m > 0 {
			e.Mask = append(e.Mask, data[k][i*m:(i+1)*m]...)
			k++
		}
		if kind == kindFinal {
			if err := r.end(); err != nil {
				return err
			}
			continue
		}
		size := fields[k].size()
		e.Action = append(e.Action, data[k][i*size:(i+1)*size]...)
		e.Reward, e.Discount, e.LogProb = append(e.Reward, rewards[i]), append(e.Discount, discounts[i]), append(e.LogProb, logProbs[i])
		if c := len(r.d.Costs); c > 0 {
			e.Cost = append(e.Cost, costs[i*c:(i+1)*c]...)
		}
		e.Terminated, e.Truncated = data[reward+2][i] != 0, data[reward+3][i] != 0
	}
	return nil
}

// follows checks that a row is the next one of its episode.
func (r *reader) follows(path string, number int64, step int, kind byte) error {
	if r.broken {
		return nil
	}
	text := ""
	switch {
	case number != r.next:
		text = fmt.Sprintf("episode %d, expected %d", number, r.next)
	case step != r.e.Len():
		text = fmt.Sprintf("episode %d has step %d after step %d", number, step, r.e.Len()-1)
	case kind > kindFinal:
		text = fmt.Sprintf("the kind is %d, expected %d or %d", kind, kindTransition, kindFinal)
	case kind == kindFinal && step == 0:
		text = fmt.Sprintf("episode %d has no transition", number)
	case kind == kindTransition && (r.e.Terminated || r.e.Truncated):
		text = fmt.Sprintf("episode %d goes on after its end", number)
	}
	if text == "" {
		return nil
	}
	r.broken, r.begun = true, true
	return r.wrong(&RowError{path, r.row, text})
}

// skip leaves out the rows of an episode that is broken.
func (r *reader) skip(kind byte) {
	if kind == kindFinal {
		r.next++
		r.broken, r.begun = false, false
		r.e.reset()
	}
}

// end hands the episode over.
func (r *reader) end() error {
	r.e.Number = r.next
	r.transitions += int64(r.e.Len())
	if err := r.do(r.e); err != nil {
		return err
	}
	r.next++
	r.begun = false
	r.e.reset()
	return nil
}
