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
	tags tags
	// Memory for a summary, the event that holds it, and the record that holds that.
	summary, content, record []byte
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
		if err := t.event(0, 3, []byte("brain.Event:2")); err != nil {
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
	return t.event(step, 7, log)
}

// Scalars writes one event with all values, which TensorBoard keeps as float32.
func (t *TensorBoard) Scalars(step int64, values map[string]float64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	tags, err := t.tags.sorted(values)
	if err != nil {
		return fmt.Errorf("write event: %w", err)
	}
	if len(tags) == 0 {
		return nil
	}
	b := t.summary[:0]
	for _, tag := range tags {
		size := protowire.SizeTag(1) + protowire.SizeBytes(len(tag)) + protowire.SizeTag(2) + protowire.SizeFixed32()
		b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.BytesType), uint64(size))
		b = protowire.AppendString(protowire.AppendTag(b, 1, protowire.BytesType), tag)
		b = protowire.AppendFixed32(protowire.AppendTag(b, 2, protowire.Fixed32Type), math.Float32bits(float32(values[tag])))
	}
	t.summary = b
	return t.write(step, summaryField, b)
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
	return t.event(step, summaryField, message(1, value))
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
	return t.event(step, summaryField, message(1, value))
}

// Close closes the file.
func (t *TensorBoard) Close() error { return t.file.Close() }

// summaryField is that of an Event with values.
const summaryField = 5

// event writes an Event with a field of bytes.
func (t *TensorBoard) event(step int64, field protowire.Number, value []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.write(step, field, value)
}

// write is event for who holds the lock.
func (t *TensorBoard) write(step int64, field protowire.Number, value []byte) error {
	seconds := float64(t.now().UnixMicro()) / 1e6
	b := protowire.AppendFixed64(protowire.AppendTag(t.content[:0], 1, protowire.Fixed64Type), math.Float64bits(seconds))
	b = protowire.AppendVarint(protowire.AppendTag(b, 2, protowire.VarintType), uint64(step))
	t.content = protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), value)
	t.record = appendRecord(t.record[:0], t.content)
	if _, err := t.file.Write(t.record); err != nil {
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
