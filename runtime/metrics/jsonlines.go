package metrics

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

var _ Sink = (*JSONLines)(nil)

// JSONLines writes metrics as JSON lines; see the package comment for the form.
type JSONLines struct {
	mu   sync.Mutex
	file *os.File
	now  func() time.Time
	line []byte
	tags tags
	// names are tags as JSON.
	names map[string][]byte
}

// CreateJSONLines makes a new file; one that exists is an error, not overwritten.
func CreateJSONLines(path string, now func() time.Time) (*JSONLines, error) {
	return openJSONLines(path, os.O_EXCL, now)
}

// ResumeJSONLines appends to the file of a run that resumes from a step: lines of later steps, and
// a last line that was cut off, are removed first, atomically. A file that does not exist is made.
func ResumeJSONLines(path string, step int64, now func() time.Time) (*JSONLines, error) {
	if err := truncateAfter(path, step); err != nil {
		return nil, fmt.Errorf("resume metrics: %w", err)
	}
	return openJSONLines(path, 0, now)
}

func openJSONLines(path string, flag int, now func() time.Time) (*JSONLines, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|flag, 0o666)
	if err != nil {
		return nil, fmt.Errorf("open metrics: %w", err)
	}
	return &JSONLines{file: f, now: now, names: map[string][]byte{}}, nil
}

// Scalars writes one line.
func (j *JSONLines) Scalars(step int64, values map[string]float64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	tags, err := j.tags.sorted(values)
	if err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	b := append(j.line[:0], `{"step":`...)
	b = strconv.AppendInt(b, step, 10)
	b = append(b, `,"time":`...)
	b = strconv.AppendFloat(b, float64(j.now().UnixMicro())/1e6, 'f', -1, 64)
	for _, tag := range tags {
		name, known := j.names[tag]
		if !known {
			if name, err = json.Marshal(tag); err != nil {
				return fmt.Errorf("write metrics: tag %q: %w", tag, err)
			}
			j.names[tag] = name
		}
		b = append(b, ',')
		b = append(b, name...)
		b = append(b, ':')
		b = appendNumber(b, values[tag])
	}
	j.line = append(b, '}', '\n')
	if _, err := j.file.Write(j.line); err != nil {
		return fmt.Errorf("write metrics: %w", err)
	}
	return nil
}

// Close closes the file.
func (j *JSONLines) Close() error { return j.file.Close() }

func appendNumber(b []byte, v float64) []byte {
	switch {
	case math.IsNaN(v):
		return append(b, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(b, `"-Infinity"`...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// Record is one line of a JSON lines file.
type Record struct {
	Step   int64
	Time   time.Time
	Values map[string]float64
}

// ReadJSONLines reads the records of a file in order. A last line without its end, as a killed
// process leaves it, is not part of the result; any other line that cannot be read is an error that
// names its number.
func ReadJSONLines(path string) ([]Record, error) {
	var records []Record
	err := eachLine(path, func(_ []byte, r Record) error {
		records = append(records, r)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return records, nil
}

// eachLine calls f with each whole line, its end included.
func eachLine(path string, f func(line []byte, r Record) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	reader := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, err := reader.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		record, err := parseLine(line)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
		if err := f(line, record); err != nil {
			return err
		}
	}
}

func parseLine(line []byte) (Record, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		return Record{}, err
	}
	var r Record
	var seconds float64
	if err := errors.Join(take(fields, "step", &r.Step), take(fields, "time", &seconds)); err != nil {
		return Record{}, err
	}
	r.Time = time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC()
	r.Values = make(map[string]float64, len(fields))
	for tag, text := range fields {
		v, err := parseNumber(text)
		if err != nil {
			return Record{}, fmt.Errorf("tag %q: %w", tag, err)
		}
		r.Values[tag] = v
	}
	return r, nil
}

func take(fields map[string]json.RawMessage, key string, into any) error {
	text, ok := fields[key]
	if !ok {
		return fmt.Errorf("the key %q is missing", key)
	}
	delete(fields, key)
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("key %q: %w", key, err)
	}
	return nil
}

func parseNumber(text []byte) (float64, error) {
	switch string(text) {
	case `"NaN"`:
		return math.NaN(), nil
	case `"Infinity"`:
		return math.Inf(1), nil
	case `"-Infinity"`:
		return math.Inf(-1), nil
	case "null":
		return 0, errors.New("expected a number, found null")
	}
	var v float64
	err := json.Unmarshal(text, &v)
	return v, err
}

func truncateAfter(path string, step int64) error {
	var kept bytes.Buffer
	err := eachLine(path, func(line []byte, r Record) error {
		if r.Step <= step {
			kept.Write(line)
		}
		return nil
	})
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if stat, err := os.Stat(path); err == nil && stat.Size() == int64(kept.Len()) {
		return nil
	}
	return atomicfile.WriteBytes(path, kept.Bytes())
}
