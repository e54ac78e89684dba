package metrics

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

var _ Sink = (*TensorBoard)(nil)

// TensorBoard writes an event file as TensorBoard reads it: TFRecords of tensorflow.Event messages
// (tensorflow/core/util/ event.proto and tensorflow/core/framework/summary.proto; the field numbers
// below are theirs).
type TensorBoard struct {
	mu   sync.Mutex
	file *os.File
	now  func() time.Time
	buf  []byte
}

// CreateTensorBoard makes a new event file in dir, which is created where it is missing.
func CreateTensorBoard(dir string, now func() time.Time) (*TensorBoard, error) {
	t, err := newTensorBoard(dir, now)
	if err != nil {
		return nil, fmt.Errorf("create event file: %w", err)
	}
	return t, nil
}

// ResumeTensorBoard makes a further event file in dir for a run that resumes from a step.
// TensorBoard then ignores the points of earlier files that are of later steps.
func ResumeTensorBoard(dir string, step int64, now func() time.Time) (*TensorBoard, error) {
	t, err := newTensorBoard(dir, now)
	if err == nil {
		err = t.sessionStart(step + 1)
	}
	if err != nil {
		return nil, fmt.Errorf("resume event file: %w", err)
	}
	return t, nil
}

func newTensorBoard(dir string, now func() time.Time) (*TensorBoard, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	// Files are read in the order of their names: by time, and within a second by the number.
	for n := range 1000 {
		name := fmt.Sprintf("events.out.tfevents.%010d.%s.%03d", now().Unix(), host, n)
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if errors.Is(err, os.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		t := &TensorBoard{file: f, now: now}
		// The first event names the version of the format.
		version := protowire.AppendString(protowire.AppendTag(nil, 3, protowire.BytesType), "brain.Event:2")
		if err := t.event(0, version); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		return t, nil
	}
	return nil, fmt.Errorf("%s has a thousand event files of this second", dir)
}

// sessionStart writes SessionLog.START, at which readers drop what they have of this step and later
// ones.
func (t *TensorBoard) sessionStart(step int64) error {
	log := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	return t.event(step, message(7, log))
}

// Scalars writes one event with all values, which TensorBoard keeps as float32.
func (t *TensorBoard) Scalars(step int64, values map[string]float64) error {
	tags, err := sortedTags(values)
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	if len(tags) == 0 {
		return nil
	}
	var summary []byte
	for _, tag := range tags {
		value := protowire.AppendTag(tagField(tag), 2, protowire.Fixed32Type)
		value = protowire.AppendFixed32(value, math.Float32bits(float32(values[tag])))
		summary = append(summary, message(1, value)...)
	}
	return t.event(step, message(5, summary))
}

// Text writes text, read as Markdown, which TensorBoard shows on its text page: the configuration
// of a run, for instance.
func (t *TensorBoard) Text(step int64, tag, text string) error {
	if err := checkTag(tag); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	const stringType = 7 // DT_STRING
	tensor := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), stringType)
	one := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 1)
	tensor = append(tensor, message(2, message(2, one))...)
	tensor = protowire.AppendString(protowire.AppendTag(tensor, 8, protowire.BytesType), text)

	plugin := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "text")
	value := append(tagField(tag), message(9, message(1, plugin))...)
	value = append(value, message(8, tensor)...)
	return t.event(step, message(5, message(1, value)))
}

// Histogram writes the distribution of values, in 30 buckets of equal width. Values that are not
// finite are left out; if none is left, nothing is written. Data is not kept.
func (t *TensorBoard) Histogram(step int64, tag string, data []float32) error {
	if err := checkTag(tag); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	h := newHistogram(data)
	if h.count == 0 {
		return nil
	}
	value := append(tagField(tag), message(5, h.encode())...)
	return t.event(step, message(5, message(1, value)))
}

// Close closes the file.
func (t *TensorBoard) Close() error { return t.file.Close() }

// event writes an Event whose content is given as encoded fields.
func (t *TensorBoard) event(step int64, content []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	seconds := float64(t.now().UnixMicro()) / 1e6
	event := protowire.AppendFixed64(protowire.AppendTag(nil, 1, protowire.Fixed64Type), math.Float64bits(seconds))
	event = protowire.AppendVarint(protowire.AppendTag(event, 2, protowire.VarintType), uint64(step))
	event = append(event, content...)
	t.buf = appendRecord(t.buf[:0], event)
	if _, err := t.file.Write(t.buf); err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	return nil
}

func tagField(tag string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), tag)
}

func message(field protowire.Number, content []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), content)
}
