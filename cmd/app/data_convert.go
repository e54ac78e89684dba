package app

import (
	"fmt"

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
	var out, freq string
	cmd := &cobra.Command{
		Use:   "convert CONFIG.yaml|FOLDER|FILE --out FOLDER",
		Short: "Write bars as a folder in Qlib's format",
		Long: `Reads rows as data inspect does and writes them as a folder that Qlib reads: calendars, instruments and features with adjusted
prices, volumes in adjusted shares, $factor and the columns of source.extra. Such a folder can be the source.path of a configuration, as
any other of Qlib's can.`,
		Example: `  onnxrl data convert prices.csv --out runs/data/qlib
  onnxrl data convert experiment.yaml --set source.extra=[turn] --out runs/data/qlib
  onnxrl data inspect runs/data/qlib`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			_, data, err := a.rawBars(args[0], sets)
			if err != nil {
				return err
			}
			if err := bars.WriteQlib(out, freq, data); err != nil {
				return err
			}
			c := converted{Out: out, Format: "qlib", Symbols: len(data.Series), Adjustment: data.Adjustment.String(), Files: data.Files}
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
	cmd.Flags().StringVarP(&out, "out", "o", "", "folder to write, which must not exist")
	cmd.Flags().StringVar(&freq, "frequency", "day", "name of the calendar: day, 1min, …")
	_ = cmd.MarkFlagRequired("out") // The flag is there.
	return cmd
}
