package app

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// windowsReport is what was written; the JSON keys are stable.
type windowsReport struct {
	Out      string `json:"out"`
	Rows     int    `json:"rows"`
	Range    string `json:"range"`
	Window   int    `json:"window"`
	Features int    `json:"features"`
	Horizon  int    `json:"horizon"`
	// DataSHA256 identifies the data that the windows are of.
	DataSHA256 string `json:"data_sha256"`
}

func (a *app) dataWindowsCommand() *cobra.Command {
	var sets []string
	var out string
	o := prepared.WindowOptions{}
	cmd := &cobra.Command{
		Use:   "windows CONFIG.yaml --out FILE.parquet",
		Short: "Write windows and what followed them, to pretrain an encoder on",
		Long: `Prepares the data and writes a table with a row for each window of one asset: the features as the environment shows them, bar by bar, and targets
from the bars that follow, next_volatility (the logarithm of the root mean square of daily log returns), next_return (their sum) and next_returns
(themselves). onnxrl fit trains networks on it. Windows and targets lie in one range of the split, so nothing of another is learnt from.`,
		Example: `  onnxrl data windows configs/experiments/qtmrl.yaml --set env.data.source.path=us16_daily.csv.gz --out windows.parquet`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.dataWindows(args[0], sets, out, o) },
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&sets, "set", nil, "edit the configuration")
	fl.StringVarP(&out, "out", "o", "", "file to write")
	fl.StringVar(&o.Range, "split", "train", "range of the split that windows are taken from")
	fl.IntVar(&o.Horizon, "horizon", 5, "bars that the targets look ahead")
	fl.IntVar(&o.Stride, "stride", 1, "bars between windows of one asset")
	_ = cmd.MarkFlagRequired("out") // The flag is there.
	return cmd
}

func (a *app) dataWindows(path string, sets []string, out string, o prepared.WindowOptions) error {
	c, raw, err := a.readBars(path, sets)
	if err != nil {
		return err
	}
	set, err := prepared.Build(c, raw)
	if err != nil {
		return err
	}
	m := &set.Manifest
	r := windowsReport{Out: out, Range: o.Range, Window: m.W, Features: m.F, Horizon: o.Horizon, DataSHA256: m.DataSHA256}
	if err := atomicfile.WriteFile(out, func(w io.Writer) error {
		r.Rows, err = set.WriteWindows(w, o)
		return err
	}); err != nil {
		return fmt.Errorf("data windows: %w", err)
	}
	if a.json {
		return a.printJSON(r)
	}
	_, err = fmt.Fprintf(a.out, "%d windows of %d bars and %d features, from the range %q, written to %s\n", r.Rows, r.Window, r.Features, r.Range, out)
	return err
}
