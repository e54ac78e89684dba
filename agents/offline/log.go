package offline

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// maxLine is the longest line of a log.
const maxLine = 64 << 20

// LogStep is a line of a log of decisions, as a server writes them and anybody can: what was seen,
// what was done, and what came of it. Lines of an episode are in the order of time; those of
// several episodes may alternate.
type LogStep struct {
	// Episode tells episodes apart: a string or a number. After its end the same one may come again
	// as another.
	Episode json.RawMessage `json:"episode"`
	// Step, where it is given, counts from 0 and shows holes.
	Step *int64 `json:"step,omitempty"`
	// Obs has the fields of the observation that the action was taken on: numbers, or lists of
	// them, nested or not; of a window the number of its last row. Where actions are masked, its
	// field mask has 1 for those that are valid. Of an environment with one field and no mask it
	// may be that field alone.
	Obs LogObs `json:"obs"`
	// Action is an element of the action space.
	Action json.RawMessage `json:"action"`
	// Reward is what the action earned, a number or a list of one; LogProb its log-probability, where it is known; Cost what
	// it cost beside that.
	Reward  *LogReward `json:"reward"`
	LogProb *float64   `json:"log_prob,omitempty"`
	Cost    []float64  `json:"cost,omitempty"`
	// Terminated and Truncated say that the episode ended so; one that did both has terminated, as
	// Gymnasium and Minari mean it. FinalObs is then what was seen after the last step.
	Terminated bool   `json:"terminated,omitempty"`
	Truncated  bool   `json:"truncated,omitempty"`
	FinalObs   LogObs `json:"final_obs,omitempty"`
	// Info is whatever else the writer wants to say; it is not read.
	Info json.RawMessage `json:"info,omitempty"`
}

// LogObs is an observation of a log by its fields; one that is no object is under the empty name.
type LogObs map[string]json.RawMessage

// UnmarshalJSON implements json.Unmarshaler.
func (o *LogObs) UnmarshalJSON(text []byte) error {
	if text[0] == '{' {
		return json.Unmarshal(text, (*map[string]json.RawMessage)(o))
	}
	if *o = nil; string(text) != "null" {
		*o = LogObs{"": bytes.Clone(text)}
	}
	return nil
}

// LogReward is what an action earned. A list of one number is that number: NumPy's arrays are so
// written.
type LogReward float64

// UnmarshalJSON implements json.Unmarshaler.
func (r *LogReward) UnmarshalJSON(text []byte) error {
	if text[0] != '[' {
		return json.Unmarshal(text, (*float64)(r))
	}
	var list []float64
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if len(list) != 1 {
		return fmt.Errorf("reward: %d numbers, expected 1", len(list))
	}
	*r = LogReward(list[0])
	return nil
}

// LogReport says what an import has left out.
type LogReport struct {
	// Cut are episodes without a known last observation, whose last step is therefore left out, and
	// Dropped those of which nothing was left.
	Cut, Dropped int64
	// Torn says that the last line was not written to its end, and does not count.
	Torn bool
}

// ImportLog writes the episodes of a log, JSON lines of [LogStep], as a data set in a folder that
// must not exist. m is that of the environments, with one behaviour: what acted. Episodes come in
// the order of their ends; those that have not ended are in memory.
//
// An episode that was cut off, or goes on where the log ends, needs the observation after its last
// step: without it that step is left out, and the observation that it was taken on is the final
// one. An episode that terminated needs none.
func ImportLog(ctx context.Context, path string, m Manifest, to string, told func(episodes, of int64)) (*Manifest, LogReport, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, LogReport{}, err
	}
	defer f.Close()
	l := &logReader{path: path, m: &m, in: bufio.NewReaderSize(f, 1<<20), open: map[string]*logEpisode{}}
	l.obs, l.action = m.columns()
	done, err := importing(to, m, func(w *Writer) error {
		return w.fill(ctx, 0, l.next, func(n int64) {
			if told != nil {
				told(n, 0)
			}
		})
	})
	return done, l.LogReport, err
}

// logEpisode is one that has not ended.
type logEpisode struct {
	*Episode
	// lines are those of the steps.
	lines []int64
}

// logReader reads the lines of a log.
type logReader struct {
	LogReport
	path   string
	m      *Manifest
	obs    []column
	action column
	in     *bufio.Reader
	line   int64
	open   map[string]*logEpisode
	// left are the episodes that had not ended when the log did, once it has.
	left []*logEpisode
	over bool
}

// next returns the next episode that is whole.
func (l *logReader) next() (*Episode, error) {
	for !l.over {
		text, err := l.read()
		if err == io.EOF {
			l.over = true
			for _, e := range l.open {
				l.left = append(l.left, e)
			}
			slices.SortFunc(l.left, func(a, b *logEpisode) int { return cmp.Compare(a.lines[0], b.lines[0]) })
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.path, err)
		}
		e, err := l.step(text)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", l.path, l.line, err)
		}
		if e != nil {
			return e, nil
		}
	}
	for len(l.left) > 0 {
		e := l.left[0].Episode
		l.left = l.left[1:]
		if l.cut(e) {
			return e, nil
		}
	}
	return nil, nil
}

// read returns the next line that is not empty.
func (l *logReader) read() ([]byte, error) {
	for {
		var text []byte
		for {
			part, err := l.in.ReadSlice('\n')
			if text = append(text, part...); len(text) > maxLine {
				return nil, fmt.Errorf("line %d has more than %d bytes", l.line+1, maxLine)
			}
			if err == nil {
				break
			}
			if err == io.EOF && json.Valid(text) {
				break
			}
			if err != bufio.ErrBufferFull {
				l.Torn = len(text) > 0
				return nil, err
			}
		}
		l.line++
		if text = bytes.TrimSpace(text); len(text) > 0 {
			return text, nil
		}
	}
}

// step takes a line, and returns the episode that it ends.
func (l *logReader) step(text []byte) (*Episode, error) {
	var s LogStep
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return nil, notFinite(text, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something follows the object")
	}
	id := string(s.Episode)
	switch {
	case id == "" || id == "null":
		return nil, errors.New("episode: required, a string or a number")
	case s.Reward == nil:
		return nil, errors.New("reward: required, what the action earned")
	case s.FinalObs != nil && !s.Terminated && !s.Truncated:
		return nil, errors.New("final_obs: the episode goes on; expected terminated or truncated beside it")
	case len(s.Cost) != len(l.m.Costs):
		return nil, fmt.Errorf("cost: %d numbers, expected %d", len(s.Cost), len(l.m.Costs))
	}
	e := l.open[id]
	if e == nil {
		e = &logEpisode{Episode: l.m.newEpisode()}
		e.where = func(step int) string { return fmt.Sprintf("%s: line %d", l.path, e.lines[step]) }
		l.open[id] = e
	}
	if s.Step != nil && *s.Step != int64(e.Len()) {
		return nil, fmt.Errorf("step %d of episode %s, expected %d", *s.Step, id, e.Len())
	}
	if err := l.show(e.Episode, "obs", s.Obs); err != nil {
		return nil, err
	}
	var err error
	if e.Action, err = l.action.numbers(e.Action, s.Action); err != nil {
		return nil, fmt.Errorf("action: %w", err)
	}
	discount, logProb := 1.0, math.NaN()
	if s.Terminated {
		discount = 0
	}
	if s.LogProb != nil {
		logProb = *s.LogProb
	}
	e.lines = append(e.lines, l.line)
	e.Reward, e.Discount, e.LogProb, e.Cost = append(e.Reward, float64(*s.Reward)), append(e.Discount, discount), append(e.LogProb, logProb), append(e.Cost, s.Cost...)
	if !s.Terminated && !s.Truncated {
		return nil, nil
	}
	delete(l.open, id)
	e.Terminated, e.Truncated = s.Terminated, !s.Terminated
	if s.FinalObs != nil {
		return e.Episode, l.show(e.Episode, "final_obs", s.FinalObs)
	}
	if e.Truncated {
		if !l.cut(e.Episode) {
			return nil, nil
		}
		return e.Episode, nil
	}
	// Nothing is bootstrapped from what follows the end.
	n := e.Len()
	for f, c := range l.obs {
		if l.m.Observation[f].Window != nil {
			e.Rows[f] = append(e.Rows[f], e.Rows[f][n-1])
		} else {
			e.Obs[f] = append(e.Obs[f], e.Obs[f][(n-1)*c.size():]...)
		}
	}
	e.Mask = append(e.Mask, e.Mask[(n-1)*l.m.Mask:]...)
	return e.Episode, nil
}

// cut leaves out the last step of an episode without a final observation; it reports whether a step
// is left.
func (l *logReader) cut(e *Episode) bool {
	n := e.Len() - 1
	if n == 0 {
		l.Dropped++
		return false
	}
	l.Cut++
	e.Action = e.Action[:n*l.action.size()]
	e.Reward, e.Discount, e.LogProb, e.Cost = e.Reward[:n], e.Discount[:n], e.LogProb[:n], e.Cost[:n*len(l.m.Costs)]
	e.Truncated = true
	return true
}

// show appends an observation and its mask.
func (l *logReader) show(e *Episode, key string, obs LogObs) error {
	if alone, ok := obs[""]; ok && len(obs) == 1 {
		if fields := names(l.m.Observation); len(fields) > 1 || l.m.Mask > 0 {
			if l.m.Mask > 0 {
				fields = append(fields, agents.MaskInput)
			}
			return fmt.Errorf("%s: %.20s…, expected an object with the fields %q", key, alone, fields)
		}
		obs = LogObs{l.m.Observation[0].Name: alone}
	}
	for name := range sorted.All(obs) {
		if name == agents.MaskInput && l.m.Mask > 0 {
			continue
		}
		if !slices.ContainsFunc(l.m.Observation, func(f Field) bool { return f.Name == name }) {
			return fmt.Errorf("%s.%s: the environment has the fields %q", key, name, names(l.m.Observation))
		}
	}
	for f, c := range l.obs {
		name := l.m.Observation[f].Name
		b, err := c.numbers(nil, obs[name])
		if err != nil {
			return fmt.Errorf("%s.%s: %w", key, name, err)
		}
		if l.m.Observation[f].Window != nil {
			e.Rows[f] = append(e.Rows[f], int64s(b)...)
		} else {
			e.Obs[f] = append(e.Obs[f], b...)
		}
	}
	if l.m.Mask == 0 {
		return nil
	}
	var err error
	if e.Mask, err = (column{name: maskColumn, dtype: tensor.Bool, n: l.m.Mask}).numbers(e.Mask, obs[agents.MaskInput]); err != nil {
		return fmt.Errorf("%s.%s: %w", key, agents.MaskInput, err)
	}
	return nil
}

// unfinished is a key of JSON whose value ends with the text.
var unfinished = regexp.MustCompile(`"(\w+)"\s*:[^"{}]*$`)

// notFinite says of a line that is no JSON which key has one of the numbers that JSON lacks, and
// that Python writes all the same.
func notFinite(text []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) || syntax.Offset < 1 {
		return err
	}
	before := text[:syntax.Offset-1]
	for _, number := range []string{"NaN", "Infinity"} {
		key := unfinished.FindSubmatch(before)
		if !bytes.HasPrefix(text[len(before):], []byte(number)) || key == nil {
			continue
		}
		return fmt.Errorf("%s: %s, expected finite numbers", key[1], number)
	}
	return err
}

// numbers appends a value of a column: a number, or a list, in which others may be nested.
func (c column) numbers(to []byte, text json.RawMessage) ([]byte, error) {
	if text == nil {
		return to, errors.New("it is missing")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	n, from := 0, len(to)
	for {
		t, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return to, err
		}
		number := ""
		switch t := t.(type) {
		case json.Delim:
			if t == '{' || t == '}' {
				return to, errors.New("an object, expected numbers")
			}
			continue
		case json.Number:
			number = t.String()
		case bool:
			if number = "0"; t {
				number = "1"
			}
		default:
			return to, fmt.Errorf("%v, expected numbers", t)
		}
		if to, err = c.number(to, number); err != nil {
			return to, err
		}
		n++
	}
	if n != c.n {
		return to, fmt.Errorf("%d numbers, expected %d", n, c.n)
	}
	c.inside(to[from:])
	return to, nil
}

// number appends one in the column's element type.
func (c column) number(to []byte, text string) ([]byte, error) {
	switch c.dtype {
	case tensor.Float32:
		x, err := strconv.ParseFloat(text, 32)
		return binary.LittleEndian.AppendUint32(to, math.Float32bits(float32(x))), err
	case tensor.Float64:
		x, err := strconv.ParseFloat(text, 64)
		return binary.LittleEndian.AppendUint64(to, math.Float64bits(x)), err
	case tensor.Int64:
		x, err := strconv.ParseInt(text, 10, 64)
		return binary.LittleEndian.AppendUint64(to, uint64(x)), err
	case tensor.Int32:
		x, err := strconv.ParseInt(text, 10, 32)
		return binary.LittleEndian.AppendUint32(to, uint32(x)), err
	case tensor.Uint8:
		x, err := strconv.ParseUint(text, 10, 8)
		return append(to, byte(x)), err
	case tensor.Bool:
		x, err := strconv.ParseUint(text, 10, 1)
		return append(to, byte(x)), err
	}
	return to, fmt.Errorf("elements of %v cannot be read from a log", c.dtype)
}
