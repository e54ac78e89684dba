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
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/export/report/plots"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Names of the files of a report. Tables and plots have names of their own; see Files.
const (
	PageName    = "report.html"
	SummaryName = "summary.json"
	plotFolder  = "plots"
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

// Write computes the report of a document and writes it into a folder, which is made where needed.
// Everything is computed before the first byte is written; every file is replaced as a whole, and
// report.html, which needs none of the others, is the last. Plots and tables of an earlier report
// that this one does not have are removed. The same document gives the same bytes.
func Write(ctx context.Context, dir string, doc Document) (*Files, error) {
	return writeOn(ctx, atomicfile.OS, dir, doc)
}

// writeOn is Write on a given disk.
func writeOn(ctx context.Context, disk atomicfile.Disk, dir string, doc Document) (*Files, error) {
	all, err := compose(ctx, doc)
	if err != nil {
		return nil, err
	}
	if err := store(ctx, disk, dir, all); err != nil {
		return nil, fmt.Errorf("write report: %w", err)
	}
	var f Files
	for _, file := range all {
		path := filepath.Join(dir, file.name)
		switch {
		case file.name == PageName:
			f.Page = path
		case file.name == SummaryName:
			f.Summary = path
		case filepath.Dir(file.name) == plotFolder:
			f.Plots = append(f.Plots, path)
		default:
			f.Tables = append(f.Tables, path)
		}
	}
	return &f, nil
}

// file is one of a report, with its path within the folder.
type file struct {
	name string
	data []byte
}

// Endings of the files of a plot and of a table.
var (
	plotEndings  = []string{".svg", ".png", "-dark.png"}
	tableEndings = []string{".csv", ".parquet"}
)

// compose computes all files of a report in the order in which they are written.
func compose(ctx context.Context, doc Document) ([]file, error) {
	s, err := Summarise(doc)
	if err != nil {
		return nil, err
	}
	d := doc.defaults()
	figures, err := d.figures(s)
	if err != nil {
		return nil, err
	}
	drawn, err := drawAll(ctx, figures)
	if err != nil {
		return nil, err
	}
	var all []file
	for _, t := range d.tables() {
		var plain bytes.Buffer
		if err := t.csv(&plain); err != nil {
			return nil, fmt.Errorf("report: encode %s: %w", t.name, err)
		}
		encoded, err := t.parquet()
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		all = append(all, file{t.name + tableEndings[0], plain.Bytes()}, file{t.name + tableEndings[1], encoded})
	}
	for i, f := range figures {
		for k, ending := range plotEndings {
			all = append(all, file{filepath.Join(plotFolder, f.Name+ending), drawn[i].files[k]})
		}
	}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("report: encode %s: %w", SummaryName, err)
	}
	page, err := page(s, figures, drawn)
	if err != nil {
		return nil, err
	}
	return append(all, file{SummaryName, append(text, '\n')}, file{PageName, page}), nil
}

// store writes the files and removes those of an earlier report that are not among them.
func store(ctx context.Context, disk atomicfile.Disk, dir string, all []file) error {
	if err := os.MkdirAll(filepath.Join(dir, plotFolder), 0o755); err != nil {
		return err
	}
	for _, f := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := atomicfile.WriteFileOn(disk, filepath.Join(dir, f.name), func(w io.Writer) error {
			_, err := w.Write(f.data)
			return err
		})
		if err != nil {
			return err
		}
	}
	for _, name := range possible() {
		if slices.ContainsFunc(all, func(f file) bool { return f.name == name }) {
			continue
		}
		if err := disk.RemoveAll(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// possible lists the plots and tables that a report may leave out.
func possible() []string {
	var all []string
	for _, name := range []string{"equity-matched", "drawdown-periods", "quantiles", "positions", "actions", "holding", "contribution", "cost", "lag"} {
		for _, ending := range plotEndings {
			all = append(all, filepath.Join(plotFolder, name+ending))
		}
	}
	for _, ending := range tableEndings {
		all = append(all, "positions"+ending)
	}
	return all
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
