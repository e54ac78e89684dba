package trader

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	marketbars "github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/safetensors"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Files of golden bars beside a market agent; the package comment says what is in them.
const (
	BarsFile      = "bars.safetensors"
	DecisionsFile = "decisions.safetensors"
	// BarsType and DecisionsType are their media types.
	BarsType      = "application/vnd.onnxrl.bars.v1+safetensors"
	DecisionsType = "application/vnd.onnxrl.decisions.v1+safetensors"
)

// goldenDecisions is the number of decisions that golden bars lead to, where there are enough bars.
const goldenDecisions = 8

// barColumns are the last axis of the array of bars: open, high, low, close, volume.
const barColumns = 5

// goldenBars are the state of a feed and the bars that follow it: as many as make a window, and one
// for each further decision.
type goldenBars struct {
	state    []byte
	times    []int64 // microseconds since 1970
	bars     []float64
	status   []uint8
	extra    []float64
	quotes   []float64 // of the pipeline's columns
	needs    []marketbars.QuoteColumn
	features []float32 // unscaled, of each bar

	assets, columns, width int
	file                   []byte // all of it, encoded
}

// newGoldenBars takes the last bars of a range of the market. It is nil where the range is shorter
// than a window.
func newGoldenBars(p live.Pipeline, h *prepared.History, r trading.Range) (*goldenBars, error) {
	decisions := min(goldenDecisions, r.Last+1-(p.Window-1))
	if decisions < 1 {
		return nil, nil
	}
	f, err := live.New(p)
	if err != nil {
		return nil, err
	}
	panel := h.Panel
	end := h.First + r.Last + 1
	begin := end - (p.Window - 1 + decisions)
	if err := f.Prime(panel, 0, begin); err != nil {
		return nil, err
	}
	t := &goldenBars{state: f.SaveWarm(), assets: len(panel.Symbols), columns: len(panel.Extra), width: len(p.Features), needs: p.Needs()}
	rows := make([]live.Row, t.assets)
	for at := begin; at < end; at++ {
		live.RowsAt(panel, at, rows)
		t.times = append(t.times, panel.Times[at].UnixMicro())
		for _, row := range rows {
			if row.Status != marketbars.Traded && row.Status != marketbars.Suspended {
				row.Status, row.Bar, row.Quote = marketbars.Unlisted, marketbars.Bar{}, marketbars.Quote{}
			}
			t.bars = append(t.bars, row.Open, row.High, row.Low, row.Close, row.Volume)
			t.status = append(t.status, uint8(row.Status))
			t.extra = append(t.extra, row.Extra...)
			for _, c := range t.needs {
				t.quotes = append(t.quotes, row.Quote[c])
			}
		}
		if err := f.Append(panel.Times[at], rows); err != nil {
			return nil, err
		}
		t.features = append(t.features, f.RawRow()...)
	}
	if !f.Ready() {
		return nil, fmt.Errorf("golden bars: %d bars do not make a window of %d", len(t.times), p.Window)
	}
	t.file, err = t.encode()
	return t, err
}

// encode writes the bars' file.
func (t *goldenBars) encode() ([]byte, error) {
	n := len(t.times)
	list := []safetensors.Tensor{
		safetensors.New("time", []int{n}, t.times), safetensors.New("bars", []int{n, t.assets, barColumns}, t.bars), safetensors.New("features", []int{n, t.assets, t.width}, t.features),
		safetensors.New("status", []int{n, t.assets}, t.status), safetensors.New("state", []int{len(t.state)}, t.state),
	}
	if t.columns > 0 {
		list = append(list, safetensors.New("extra", []int{n, t.assets, t.columns}, t.extra))
	}
	if len(t.needs) > 0 {
		list = append(list, safetensors.New("quotes", []int{n, t.assets, len(t.needs)}, t.quotes))
	}
	var out bytes.Buffer
	err := safetensors.Write(&out, map[string]string{"format": "onnxrl golden bars", "version": "1"}, list)
	return out.Bytes(), err
}

// row writes the i-th bars into rows and returns their time.
func (t *goldenBars) row(i int, rows []live.Row) time.Time {
	for n := range rows {
		at := i*t.assets + n
		b := t.bars[at*barColumns:]
		rows[n] = live.Row{Bar: marketbars.Bar{Open: b[0], High: b[1], Low: b[2], Close: b[3], Volume: b[4]}, Status: marketbars.Status(t.status[at]), Extra: t.extra[at*t.columns : (at+1)*t.columns]}
		for k, c := range t.needs {
			rows[n].Quote[c] = t.quotes[at*len(t.needs)+k]
		}
	}
	return time.UnixMicro(t.times[i]).UTC()
}

// readGoldenBars reads the bars of a version for a pipeline; nil where it has none.
func readGoldenBars(v artifact.Version, p live.Pipeline) (*goldenBars, error) {
	f, err := openFile(v, BarsFile)
	if f == nil || err != nil {
		return nil, err
	}
	t := &goldenBars{assets: len(p.Assets), columns: len(p.Extra), width: len(p.Features), needs: p.Needs()}
	times, err := f.Tensor("time")
	if err != nil {
		return nil, err
	}
	n := times.Len()
	state, err := array[uint8](f, "state", -1)
	if err == nil {
		t.state = state
		t.times, err = array[int64](f, "time", n)
	}
	if err == nil {
		t.bars, err = array[float64](f, "bars", n, t.assets, barColumns)
	}
	if err == nil {
		t.status, err = array[uint8](f, "status", n, t.assets)
	}
	if err == nil {
		t.features, err = array[float32](f, "features", n, t.assets, t.width)
	}
	if err == nil && t.columns > 0 {
		t.extra, err = array[float64](f, "extra", n, t.assets, t.columns)
	}
	if err == nil && len(t.needs) > 0 {
		t.quotes, err = array[float64](f, "quotes", n, t.assets, len(t.needs))
	}
	return t, err
}

// openFile reads one of the files, nil where the version has none of that title.
func openFile(v artifact.Version, title string) (_ *safetensors.File, err error) {
	if !slices.ContainsFunc(v.Files, func(f artifact.File) bool { return f.Title == title }) {
		return nil, nil
	}
	r, err := v.Open(title)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	if err = firstOf(err, r.Close()); err != nil {
		return nil, err
	}
	f, err := safetensors.NewFile(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", title, err)
	}
	if version := f.Metadata()["version"]; version != "1" {
		return nil, fmt.Errorf("%s: version %s, this program knows version 1", title, strconv.Quote(version))
	}
	return f, nil
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// array reads an array of an element type and a shape, in which -1 is any extent.
func array[T tensor.Element](f *safetensors.File, name string, shape ...int) ([]T, error) {
	x, err := f.Tensor(name)
	if err != nil {
		return nil, err
	}
	var want T
	fits := x.DType() == tensor.Of([]T{want}, 1).DType() && x.Rank() == len(shape)
	for i := range shape {
		fits = fits && (shape[i] < 0 || x.Shape()[i] == shape[i])
	}
	if !fits {
		return nil, fmt.Errorf("the array %q is %v, expected %T%v", name, x, want, shape)
	}
	return tensor.Data[T](x), nil
}
