package offline

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// minariSource is the converter between HDF5 and the stream that it describes.
//
//go:embed minari.py
var minariSource string

// maxLength is the longest episode of a stream: a length that somebody states is not believed.
const maxLength = 1 << 24

// minariHead is the first line of a stream.
type minariHead struct {
	Observation []Field        `json:"observation"`
	Action      artifact.Space `json:"action"`
	Episodes    int64          `json:"episodes,omitempty"`
	Transitions int64          `json:"transitions,omitempty"`
	Environment string         `json:"environment,omitempty"`
	MaxSteps    int            `json:"max_steps,omitempty"`
	Algorithm   string         `json:"algorithm"`
	Policy      string         `json:"policy,omitempty"`
	Config      string         `json:"config,omitempty"`
	Masked      bool           `json:"masked,omitempty"`
	// ID and Mask are of what is written.
	ID   string `json:"id,omitempty"`
	Mask int    `json:"mask"`
}

// minariLine precedes an episode.
type minariLine struct {
	Length  int  `json:"length"`
	LogProb bool `json:"log_prob"`
	End     bool `json:"end,omitempty"`
}

// Minari converts data sets from and to Minari's layout (version 0.5, in HDF5) by the Python
// interpreter of this path, with the packages h5py and numpy; empty takes $ONNXRL_PYTHON, or else
// python3 on the path.
type Minari struct{ Python string }

// command runs the converter.
func (c Minari) command(ctx context.Context, mode, folder string) (*exec.Cmd, *bytes.Buffer) {
	python := cmp.Or(c.Python, os.Getenv("ONNXRL_PYTHON"), "python3")
	cmd := exec.CommandContext(ctx, python, "-c", minariSource, mode, folder)
	said := &bytes.Buffer{}
	cmd.Stderr = said
	return cmd, said
}

// explain adds what the converter has said to its error.
func explain(err error, said *bytes.Buffer) error {
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if last := lines[len(lines)-1]; err != nil && last != "" {
		return errors.New(last)
	}
	return err
}

// Import writes the episodes of a data set of Minari into a folder that must not exist. One
// episode is in memory at a time. An episode whose last step is neither terminated nor truncated
// counts as cut off.
func (c Minari) Import(ctx context.Context, from, to string, progress func(episodes, of int64)) (_ *Manifest, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("import %s: %w", from, err)
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd, said := c.command(ctx, "read", from)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	m, err := c.read(ctx, bufio.NewReaderSize(pipe, 1<<20), to, progress)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		// One whose stream has ended is ending by itself, and may say why.
		cancel()
	}
	if ended := explain(cmd.Wait(), said); ended != nil && (err == nil || errors.Is(err, io.ErrUnexpectedEOF)) {
		err = ended
	}
	return m, err
}

// read writes what a stream has as a data set.
func (c Minari) read(ctx context.Context, r *bufio.Reader, to string, progress func(episodes, of int64)) (*Manifest, error) {
	var head minariHead
	if err := line(r, &head); err != nil {
		return nil, err
	}
	m := Manifest{
		Format: format, Environment: Environment{Name: head.Environment, Kind: "gymnasium", Config: head.Config, MaxSteps: head.MaxSteps},
		Observation: head.Observation, Action: head.Action, Behaviours: []Behaviour{{Algorithm: cmp.Or(head.Algorithm, "unknown"), Policy: head.Policy}},
	}
	if head.Masked {
		space, err := agents.SpaceOf(head.Action)
		if err != nil {
			return nil, fmt.Errorf("action: %w", err)
		}
		m.Mask = envs.MaskLen(space)
	}
	return importing(to, m, func(w *Writer) error {
		return w.fill(ctx, 0, func() (*Episode, error) { return m.readEpisode(r) }, func(n int64) {
			if progress != nil {
				progress(n, head.Episodes)
			}
		})
	})
}

// line reads a line of JSON.
func line(r *bufio.Reader, v any) error {
	text, err := r.ReadBytes('\n')
	if err != nil {
		return io.ErrUnexpectedEOF
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("the converter's line %.80q: %w", text, err)
	}
	return nil
}

// readEpisode reads an episode; nil at the end.
func (m *Manifest) readEpisode(r *bufio.Reader) (*Episode, error) {
	var l minariLine
	if err := line(r, &l); err != nil || l.End {
		return nil, err
	}
	n := l.Length
	if n < 1 || n > maxLength {
		return nil, fmt.Errorf("an episode of %d steps, expected 1 to %d", n, maxLength)
	}
	e := m.newEpisode()
	obs, action := m.columns()
	take := func(size int) (b []byte, err error) {
		b = make([]byte, size)
		if _, err = io.ReadFull(r, b); err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		return b, nil
	}
	var err error
	for f, o := range obs {
		if e.Obs[f], err = take((n + 1) * o.size()); err != nil {
			return nil, err
		}
		o.inside(e.Obs[f])
	}
	if e.Action, err = take(n * action.size()); err != nil {
		return nil, err
	}
	action.inside(e.Action)
	b, err := take(8*n + 2*n)
	if err != nil {
		return nil, err
	}
	e.Reward, e.Terminated = float64s(b[:8*n]), b[9*n-1] != 0
	e.Truncated = !e.Terminated
	for i := range n {
		e.Discount, e.LogProb = append(e.Discount, 1), append(e.LogProb, math.NaN())
		if i < n-1 && (b[8*n+i] != 0 || b[9*n+i] != 0) {
			return nil, fmt.Errorf("an episode of %d steps ends with step %d", n, i)
		}
	}
	if e.Terminated {
		e.Discount[n-1] = 0
	}
	if l.LogProb {
		if b, err = take(8 * n); err != nil {
			return nil, err
		}
		e.LogProb = float64s(b)
	}
	if m.Mask > 0 {
		e.Mask, err = take((n + 1) * m.Mask)
	}
	return e, err
}

// Export writes a data set in Minari's layout into a folder that must not exist, called id, such as
// "pendulum/expert-v0". After an error there is no such folder.
func (c Minari) Export(ctx context.Context, d *Dataset, to, id string, progress func(episodes, of int64)) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("export %s: %w", d.Dir, err)
		}
	}()
	if len(d.Costs) > 0 {
		return errors.New("its steps have costs, for which Minari has no place")
	}
	for _, f := range d.Observation {
		if f.Window != nil {
			return fmt.Errorf("observation %q is a window of a table that the data set does not have", f.Name)
		}
	}
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("%s exists; choose another folder", to)
	}
	temp := atomicfile.TempName(to)
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	cmd, said := c.command(ctx, "write", temp)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	b := bufio.NewWriterSize(pipe, 1<<20)
	err = d.stream(ctx, b, id, progress)
	err = errors.Join(err, b.Flush(), pipe.Close())
	if ended := explain(cmd.Wait(), said); ended != nil {
		return ended
	}
	if err != nil {
		return err
	}
	return os.Rename(temp, to)
}

// stream writes all episodes as the converter reads them.
func (d *Dataset) stream(ctx context.Context, w *bufio.Writer, id string, progress func(episodes, of int64)) error {
	put := func(v any) error {
		b, err := json.Marshal(v)
		if err == nil {
			_, err = w.Write(append(b, '\n'))
		}
		return err
	}
	var acted []string
	for _, b := range d.Behaviours {
		acted = append(acted, b.Describe())
	}
	if err := put(minariHead{Observation: d.Observation, Action: d.Action, Algorithm: strings.Join(acted, "; "), ID: id, Mask: d.Mask}); err != nil {
		return err
	}
	obs, action := d.columns()
	err := d.Each(ctx, func(e *Episode) error {
		known := false
		for _, p := range e.LogProb {
			known = known || p == p
		}
		if err := put(minariLine{Length: e.Len(), LogProb: known}); err != nil {
			return err
		}
		for f, o := range e.Obs {
			if _, err := w.Write(obs[f].outside(o)); err != nil {
				return err
			}
		}
		tail := append([]byte(nil), action.outside(e.Action)...)
		number := func(list []float64) {
			for _, x := range list {
				tail = binary.LittleEndian.AppendUint64(tail, math.Float64bits(x))
			}
		}
		number(e.Reward)
		for _, ended := range []bool{e.Terminated, e.Truncated} {
			flags := make([]byte, e.Len())
			if ended {
				flags[e.Len()-1] = 1
			}
			tail = append(tail, flags...)
		}
		if known {
			number(e.LogProb)
		}
		if _, err := w.Write(append(tail, e.Mask...)); err != nil {
			return err
		}
		if progress != nil {
			progress(e.Number, d.Episodes)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return put(minariLine{End: true})
}
