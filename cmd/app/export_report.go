package app

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// exportSize is a graph's size and the time of a run.
type exportSize struct {
	Name string `json:"name"`
	// Nodes is 0 for a file in ONNX Runtime's format.
	Nodes int `json:"nodes"`
	Bytes int `json:"bytes"`
	// Micros is the median time of a bound run at batch 1, or at that which the model takes, absent
	// for the optimised graph.
	Micros *float64 `json:"micros,omitempty"`
}

// Runs are timed in turns, so that what else the machine does meets both models. Tests that are not
// about times have fewer.
var timedTurns, timedRuns = 9, 50

// sizes measures the published and the exported model, and writes the optimised graph of the
// exported one where it is asked for.
func (a *app) sizes(s *exportSource, model *onnx.Model, f *exportFlags, rows exportRows) (_ []exportSize, ratio float64, err error) {
	list := []exportSize{{Name: "published"}, {Name: "exported"}}
	var times [2][]float64
	var bound [2]engine.Binding
	for i, m := range []*onnx.Model{s.model, model} {
		if list[i].Nodes, list[i].Bytes, err = sizeOf(m); err != nil {
			return nil, 0, err
		}
		session, err := s.engine.Compile(m, engine.Options{})
		if err != nil {
			return nil, 0, err
		}
		defer session.Close()
		if bound[i], err = bindRow(session, rows, max(1, s.batch)); err != nil {
			return nil, 0, err
		}
		defer bound[i].Close()
	}
	for range timedTurns {
		for i, b := range bound {
			took := make([]float64, timedRuns)
			for k := range took {
				from := time.Now()
				if err := b.Run(); err != nil {
					return nil, 0, err
				}
				took[k] = float64(time.Since(from).Nanoseconds()) / 1e3
			}
			times[i] = append(times[i], middle(took))
		}
	}
	for i := range bound {
		t := middle(times[i])
		list[i].Micros = &t
	}
	ratio = *list[1].Micros / max(*list[0].Micros, 1e-3)
	if f.optimized != "" {
		o, err := a.optimize(s, model, f.optimized)
		if err != nil {
			return nil, 0, fmt.Errorf("--optimized: %w", err)
		}
		list = append(list, o)
	}
	return list, ratio, nil
}

func middle(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

func sizeOf(m *onnx.Model) (nodes, size int, err error) {
	text, err := onnx.Marshal(m)
	return len(m.Graph.Node), len(text), err
}

// bindRow binds a session to buffers with the first n recorded rows.
func bindRow(s engine.Session, rows exportRows, n int) (engine.Binding, error) {
	var in, out []*tensor.Tensor
	for _, p := range s.Inputs() {
		in = append(in, rows.inputs[p.Name].Rows(0, n))
	}
	for _, p := range s.Outputs() {
		t := rows.outputs[p.Name]
		if t.Rank() == 0 || t.Shape()[0] != rows.inputs[s.Inputs()[0].Name].Shape()[0] {
			return nil, fmt.Errorf("output %q is %v: expected a row for each row of the inputs", p.Name, t)
		}
		out = append(out, tensor.New(t.DType(), append([]int{n}, t.Shape()[1:]...)...))
	}
	return s.Bind(out, in)
}

// ortFormat is the extension of files in ONNX Runtime's own format, which its minimal builds read,
// and ortMagic what is in them behind the first four bytes.
const (
	ortFormat = ".ort"
	ortMagic  = "ORTM"
)

// optimize writes the graph as the engine has optimised it, but for what depends on the processor:
// as ONNX, or where the path says so in ONNX Runtime's format.
func (a *app) optimize(s *exportSource, model *onnx.Model, path string) (_ exportSize, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return exportSize{}, err
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".optimized-*")
	if err != nil {
		return exportSize{}, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	form := ".onnx"
	if strings.EqualFold(filepath.Ext(path), ortFormat) {
		form = ortFormat
	}
	// The engine goes by the extension, too.
	temp := filepath.Join(dir, "model"+form)
	session, err := s.engine.Compile(model, engine.Options{Optimize: engine.OptExtended, Optimized: temp})
	if err != nil {
		return exportSize{}, err
	}
	if err := session.Close(); err != nil {
		return exportSize{}, err
	}
	if !isFile(temp) {
		return exportSize{}, fmt.Errorf("the engine %s does not write optimised graphs: use --engine ort", s.engine.Name())
	}
	out := exportSize{Name: "optimised"}
	if form == ortFormat {
		text, err := os.ReadFile(temp)
		if err != nil {
			return out, err
		}
		if len(text) < 8 || string(text[4:8]) != ortMagic {
			return out, fmt.Errorf("the engine %s has written another format than that of %s files", s.engine.Name(), ortFormat)
		}
		out.Bytes = len(text)
		return out, os.Rename(temp, path)
	}
	m, err := onnx.Load(temp)
	if err != nil {
		return out, err
	}
	if out.Nodes, out.Bytes, err = sizeOf(m); err != nil {
		return out, err
	}
	return out, os.Rename(temp, path)
}

// mostKept is how many weights that stay float32 are printed; JSON has all.
const mostKept = 12

// Print prints the result for people.
func (r *exportResult) Print(out io.Writer) error {
	w := printable.NewTable(out)
	row := func(k, format string, v ...any) { fmt.Fprintf(w, "%s\t%s\n", k, fmt.Sprintf(format, v...)) }
	row("source", "%s", r.Source)
	trained := "its own parameters as inputs"
	if r.Trained == "checkpoint" {
		trained = "the network in training, of the newest checkpoint"
	}
	row("parity", "with %s: max error %.2g over %d values; %d rows, %s", trained, r.Parity.MaxError, r.Parity.Values, r.Rows, r.Observations)
	if r.Parity.Episodes > 0 {
		row("", "%s gone through with the memory of each form", plural(r.Parity.Episodes, "episode"))
	}
	if r.Parity.Choices > 0 {
		row("", "%d choices, of which %d nearly tied and %d of these made differently", r.Parity.Choices, r.Parity.Ties, r.Parity.Changed)
	}
	for i, line := range r.lossLines() {
		row([]string{"loss", ""}[min(i, 1)], "%s", line)
	}
	for i, k := range r.Kept {
		if i == mostKept {
			row("", "and %d more", len(r.Kept)-i)
			break
		}
		row([]string{"float32", ""}[min(i, 1)], "%s, %d numbers: %s", k.Name, k.Elements, k.Why)
	}
	if r.KeptSmall > 0 {
		row([]string{"float32", ""}[min(len(r.Kept), 1)], "%s of fewer than %d numbers", plural(r.KeptSmall, "weight"), bake.SmallestWeight)
	}
	for i, line := range r.Exceeded {
		row([]string{"exceeded", ""}[min(i, 1)], "%s", line)
	}
	row("format", "%s, %s", r.Format, plural(len(r.Files), "file"))
	for _, f := range r.Files {
		row("", "%s", f)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	w = printable.NewNumbers(out)
	fmt.Fprintf(w, "model\tnodes\tsize\tµs at batch %d\t\n", max(1, r.Batch))
	for _, m := range r.Models {
		micros := "-"
		if m.Micros != nil {
			micros = fmt.Sprintf("%.1f", *m.Micros)
		}
		nodes := "-"
		if m.Nodes > 0 {
			nodes = fmt.Sprint(m.Nodes)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", m.Name, nodes, byteCount(int64(m.Bytes)), micros)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "exported by published: %.2f × the time of a run (engine %s, one thread)\n", r.Ratio, r.Engine)
	return err
}
