package feed

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unsafe"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// ColumnsMagic begins and ends a file.
const ColumnsMagic = "onnxrlc1"

const page = 4096

// index describes a file.
type index struct {
	Assets   []string `json:"assets"`
	Features []string `json:"features"`
	Bars     int      `json:"bars"`
	// Zone is that of the dates, as time.LoadLocation takes it.
	Zone      string                       `json:"zone"`
	Columns   []column                     `json:"columns"`
	Splits    map[envs.Split]trading.Range `json:"splits"`
	Parts     []trading.Range              `json:"train_parts,omitempty"`
	Scales    []trading.Scale              `json:"scales,omitempty"`
	LookAhead []string                     `json:"look_ahead,omitempty"`
	Digests   map[string]string            `json:"digests,omitempty"`
	Adjusted  string                       `json:"adjusted,omitempty"`
	Notes     []string                     `json:"notes,omitempty"`
	Rules     string                       `json:"rules,omitempty"`
	// SHA256 is that of the index with this field empty.
	SHA256 string `json:"sha256"`
}

type column struct {
	Name   string `json:"name"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Column writes the values of a column, time by time.
type Column struct {
	Name  string
	Write func(w io.Writer) error
}

// SaveColumns stores data, whose market must be valid.
func SaveColumns(path string, d *trading.Data) error {
	if err := d.Market.Validate(); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	m := d.Market
	dates := make([]int64, m.Len())
	for i, t := range m.Dates {
		if dates[i] = t.UnixNano(); !time.Unix(0, dates[i]).Equal(t) {
			return fmt.Errorf("save %s: bar %d is at %s, and the file has times from 1677-09-21 to 2262-04-11", path, i, t.Format(time.DateTime))
		}
	}
	list := []Column{{"date", raw(dates)}, {"x", raw(m.X)}}
	for _, c := range numbers(m) {
		if *c.values != nil {
			list = append(list, Column{c.name, raw(*c.values)})
		}
	}
	list = append(list, Column{"tradable", raw(m.Tradable)})
	if m.AtOpen != nil {
		list = append(list, Column{"at_open", raw(m.AtOpen)})
	}
	if m.Members != nil {
		list = append(list, Column{"member", raw(m.Members)})
	}
	if m.Gone != nil {
		list = append(list, Column{"gone", raw(m.Gone)})
	}
	return WriteColumns(path, d, m.Len(), list)
}

// WriteColumns stores columns that need not be in memory; of the market of d only the names and the zone
// of the first date are used. Whoever calls it must know that the market is valid.
func WriteColumns(path string, d *trading.Data, bars int, list []Column) error {
	m := d.Market
	x := index{
		Assets: m.Assets, Features: m.Features, Bars: bars, Splits: d.Splits, Parts: d.TrainParts, Scales: d.Scales, LookAhead: d.LookAhead, Digests: d.Digests, Adjusted: d.Adjusted,
		Notes: d.Notes, Zone: "UTC",
	}
	if len(m.Dates) > 0 {
		x.Zone = m.Dates[0].Location().String()
	}
	if m.Rules != nil {
		x.Rules = m.Rules.Name()
	}
	err := atomicfile.WriteFile(path, func(file io.Writer) error {
		w := &counter{w: bufio.NewWriterSize(file, 1<<20)}
		if _, err := io.WriteString(w, ColumnsMagic); err != nil {
			return err
		}
		for _, c := range list {
			if _, err := w.Write(make([]byte, -w.n&(page-1))); err != nil {
				return err
			}
			h, from := sha256.New(), w.n
			if err := c.Write(io.MultiWriter(w, h)); err != nil {
				return fmt.Errorf("column %s: %w", c.Name, err)
			}
			x.Columns = append(x.Columns, column{c.Name, from, w.n - from, hex.EncodeToString(h.Sum(nil))})
		}
		var err error
		if x.SHA256, err = x.digest(); err != nil {
			return err
		}
		text, err := json.Marshal(x)
		if err != nil {
			return err
		}
		tail := append(binary.LittleEndian.AppendUint64(text, uint64(len(text))), ColumnsMagic...)
		if _, err := w.Write(tail); err != nil {
			return err
		}
		return w.w.Flush()
	})
	if err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	return nil
}

// digest identifies a file.
func (x index) digest() (string, error) {
	x.SHA256 = ""
	text, err := json.Marshal(x)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

// number is a column [T,N] of a market.
type number struct {
	name   string
	values *[]float64
}

// numbers lists the columns of a market whose values are float64.
func numbers(m *trading.Market) []number {
	list := []number{{"open", &m.Open}, {"close", &m.Close}, {"volume", &m.Volume}, {"limit_up", &m.LimitUp}, {"limit_down", &m.LimitDown}, {"spread", &m.Spread}, {"depth", &m.Depth}, {"factor", &m.Factor}, {"dividend", &m.Dividend}, {"bonus", &m.Bonus}}
	if r := m.Raw; r != nil {
		list = append(list, number{"raw.open", &r.Open}, number{"raw.close", &r.Close}, number{"raw.volume", &r.Volume},
			number{"raw.limit_up", &r.LimitUp}, number{"raw.limit_down", &r.LimitDown}, number{"raw.spread", &r.Spread}, number{"raw.depth", &r.Depth}, number{"raw.factor", &r.Factor}, number{"raw.dividend", &r.Dividend}, number{"raw.bonus", &r.Bonus})
	}
	return list
}

// raw writes numbers as they are in memory, which is little-endian wherever the program runs.
func raw[T any](values []T) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := w.Write(bytesOf(values))
		return err
	}
}

func bytesOf[T any](values []T) []byte {
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(zero)))
}

// counter counts what is written.
type counter struct {
	w *bufio.Writer
	n int64
}

func (c *counter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	c.n += int64(n)
	return n, err
}
