package report

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"onnxrl/export/report/plots"
	"onnxrl/runtime/atomicfile"
)

// Names of the files of a report. Tables and plots have names of their own; see Files.
const (
	PageName    = "report.html"
	SummaryName = "summary.json"
	PlotFolder  = "plots"
)

// Files are the paths of what was written.
type Files struct {
	Page    string   `json:"page"`
	Summary string   `json:"summary"`
	Tables  []string `json:"tables"` // CSV and Parquet
	Plots   []string `json:"plots"`  // SVG, and PNG for light and for dark backgrounds
}

// dpi is the resolution of PNG files: twice that of a screen of 72 points to an inch.
const dpi = 144

// Write computes the report of a document and writes it into a folder, which is made where needed. Every file is replaced as a whole, and report.html, which needs none of the others, is the last. The same document gives the same bytes.
func Write(ctx context.Context, dir string, doc Document) (*Files, error) {
	return WriteOn(ctx, atomicfile.OS, dir, doc)
}

// WriteOn is Write on a given disk.
func WriteOn(ctx context.Context, disk atomicfile.Disk, dir string, doc Document) (*Files, error) {
	s, err := Summarise(doc)
	if err != nil {
		return nil, err
	}
	d := doc.defaults()
	figures, err := d.figures(s)
	if err != nil {
		return nil, err
	}
	w := writer{disk: disk, dir: dir, files: Files{Page: filepath.Join(dir, PageName), Summary: filepath.Join(dir, SummaryName)}}
	drawn, err := drawAll(ctx, figures)
	if err != nil {
		return nil, err
	}
	page, err := page(s, figures, drawn)
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("report: encode %s: %w", SummaryName, err)
	}

	if err := os.MkdirAll(filepath.Join(dir, PlotFolder), 0o755); err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	for _, t := range d.tables() {
		encoded, err := t.parquet()
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		var plain bytes.Buffer
		if err := t.csv(&plain); err != nil {
			return nil, fmt.Errorf("report: encode %s: %w", t.name, err)
		}
		w.files.Tables = append(w.files.Tables, w.put(ctx, t.name+".csv", plain.Bytes()), w.put(ctx, t.name+".parquet", encoded))
	}
	for i, f := range figures {
		for k, suffix := range []string{".svg", ".png", "-dark.png"} {
			w.files.Plots = append(w.files.Plots, w.put(ctx, filepath.Join(PlotFolder, f.Name+suffix), drawn[i].files[k]))
		}
	}
	w.put(ctx, SummaryName, append(text, '\n'))
	w.put(ctx, PageName, page)
	if w.err != nil {
		return nil, fmt.Errorf("write report: %w", w.err)
	}
	return &w.files, nil
}

// writer keeps the first error.
type writer struct {
	disk  atomicfile.Disk
	dir   string
	files Files
	err   error
}

func (w *writer) put(ctx context.Context, name string, data []byte) string {
	path := filepath.Join(w.dir, name)
	if w.err == nil {
		w.err = ctx.Err()
	}
	if w.err == nil {
		w.err = atomicfile.WriteFileOn(w.disk, path, func(out io.Writer) error {
			_, err := out.Write(data)
			return err
		})
	}
	return path
}

// drawing is a figure in all its forms.
type drawing struct {
	inline string
	files  [3][]byte // SVG, PNG, dark PNG
	err    error
}

// drawAll draws on all processors.
func drawAll(ctx context.Context, figures []figure) ([]drawing, error) {
	all := make([]drawing, len(figures))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(figures)) {
		workers.Go(func() {
			for i := range next {
				all[i] = drawOne(figures[i])
			}
		})
	}
	for i := range figures {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	for _, d := range all {
		if d.err != nil {
			return nil, fmt.Errorf("report: %w", d.err)
		}
	}
	return all, ctx.Err()
}

func drawOne(f figure) (d drawing) {
	if d.inline, d.err = f.Inline(); d.err != nil {
		return d
	}
	if d.files[0], d.err = f.SVG(); d.err != nil {
		return d
	}
	for k, scheme := range []plots.Scheme{plots.Light, plots.Dark} {
		if d.files[1+k], d.err = f.PNG(scheme, dpi); d.err != nil {
			return d
		}
	}
	return d
}
