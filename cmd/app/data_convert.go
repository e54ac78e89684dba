package app

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// converted is what data convert has written.
type converted struct {
	Out        string      `json:"out"`
	Format     string      `json:"format"`
	Symbols    int         `json:"symbols"`
	Rows       int         `json:"rows"`
	Adjustment string      `json:"adjustment"`
	Files      []bars.File `json:"files"`
}

func (a *app) dataConvertCommand() *cobra.Command {
	var sets []string
	var out, freq, size string
	var ticks bool
	cmd := &cobra.Command{
		Use:   "convert CONFIG.yaml|FOLDER|FILE --out FOLDER|FILE",
		Short: "Write bars or ticks as a table, bars for Qlib, and bars of ticks",
		Long: `Reads rows as data inspect does and writes them as a folder that Qlib reads: calendars, instruments and features with adjusted
prices, volumes in adjusted shares, $factor and the columns of source.extra. Such a folder can be the source.path of a configuration, as
any other of Qlib's can. Where the name of --out ends in .csv or .parquet, writes a table of the rows as they were read instead.

With --bars, the rows are ticks or snapshots of a book, and bars of time, volume, money or numbers of ticks are made of them. That is done row by row, with no more in memory than the bars. Bars leave neither the sessions of source.exchange (or source.sessions) nor the day. Quotes add mid, spread and depth.
With --ticks, the ticks themselves are written, as .parquet or .csv: prices, volumes in shares, amounts, the book and source.extra.`,
		Example: `  onnxrl data convert prices.csv --out runs/data/qlib
  onnxrl data convert experiment.yaml --set source.extra=[turn] --out runs/data/qlib
  onnxrl data inspect runs/data/qlib
  onnxrl data convert ticks.csv.gz --bars 5m --set source.exchange=xshg --out bars.parquet
  onnxrl data convert ticks.csv.gz --ticks --out ticks.parquet
  onnxrl data convert ticks.parquet --bars volume=100000 --set source.sessions=[09:30-16:00] --out bars.csv`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if ticks {
				return a.convertTicks(args[0], sets, out)
			}
			cfg, data, err := a.rawBars(args[0], sets, size)
			if err != nil {
				return err
			}
			format := "qlib"
			switch ext := filepath.Ext(out); ext {
			case ".csv", ".parquet":
				format, err = ext[1:], bars.WriteTable(out, data)
			default:
				err = bars.WriteQlib(out, freq, data)
			}
			if err != nil {
				return err
			}
			notes := data.Notes
			if size == "" {
				notes = append(notes, data.UnitNotes()...)
			} else {
				examined, err := data.Examine(cfg.Quality)
				if err != nil {
					return err
				}
				notes = append(notes, examined...)
			}
			tellNotes(a.err, notes)
			c := converted{Out: out, Format: format, Symbols: len(data.Series), Adjustment: data.Adjustment.String(), Files: data.Files}
			for _, s := range data.Series {
				c.Rows += len(s.Records)
			}
			if a.json {
				return a.printJSON(c)
			}
			_, err = fmt.Fprintf(a.out, "%s\n%d rows of %d symbols written to %s\n", c.Adjustment, c.Rows, c.Symbols, out)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&sets, "set", nil, "edit the configuration, for instance --set source.adjust=none")
	cmd.Flags().StringVarP(&out, "out", "o", "", "folder to write, or a file that ends in .csv or .parquet; it must not exist")
	cmd.Flags().StringVar(&size, "bars", "", "make bars of ticks: 5m, 1d, volume=100000, dollar=1e6, ticks=500")
	cmd.Flags().BoolVar(&ticks, "ticks", false, "write the ticks as they are, and no bars")
	cmd.MarkFlagsMutuallyExclusive("ticks", "bars")
	cmd.Flags().StringVar(&freq, "frequency", "day", "name of the calendar: day, 1min, …")
	_ = cmd.MarkFlagRequired("out") // The flag is there.
	return cmd
}

// convertTicks writes the ticks of a source as a table.
func (a *app) convertTicks(path string, sets []string, out string) error {
	cfg, err := a.rawConfig(path, sets)
	if err != nil {
		return err
	}
	w, err := bars.WriteTicks(out, cfg.Source, cfg.Assets)
	if err != nil {
		return err
	}
	c := converted{Out: out, Format: filepath.Ext(out)[1:], Symbols: w.Symbols, Rows: w.Rows, Adjustment: "none: the rows are ticks", Files: w.Files}
	if a.json {
		return a.printJSON(c)
	}
	_, err = fmt.Fprintf(a.out, "%d ticks of %d symbols written to %s\n", w.Rows, w.Symbols, out)
	return err
}
