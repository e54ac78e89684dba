package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// inspectColumns checks a file of columns and describes it.
func (a *app) inspectColumns(path string) (err error) {
	if err := feed.VerifyColumns(path); err != nil {
		return err
	}
	d, err := feed.OpenColumns(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	m := d.Market
	w := printable.NewTable(a.out)
	fmt.Fprintf(w, "times\tT = %d\t%s to %s\n", m.Len(), m.Dates[0].Format(time.DateTime), m.Dates[m.Len()-1].Format(time.DateTime))
	fmt.Fprintf(w, "assets\tN = %d\t%s\n", len(m.Assets), shorten(m.Assets, 16))
	fmt.Fprintf(w, "features\tF = %d\t%s\n", len(m.Features), shorten(m.Features, 8))
	for _, name := range slices.Sorted(maps.Keys(d.Splits)) {
		r := d.Splits[name]
		fmt.Fprintf(w, "%s\t%d bars\t%s to %s\n", name, r.Last-r.First+1, m.Dates[r.First].Format(time.DateTime), m.Dates[r.Last].Format(time.DateTime))
	}
	fmt.Fprintf(w, "data\t%s\n", d.Digests["data_sha256"][:12])
	if err := w.Flush(); err != nil {
		return err
	}
	for _, n := range d.Notes {
		fmt.Fprintf(a.out, "note: %s\n", n)
	}
	return nil
}
