package app

import (
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

func (a *app) dataLookaheadCommand() *cobra.Command {
	var sets []string
	var cuts int
	cmd := &cobra.Command{
		Use:   "lookahead CONFIG.yaml",
		Short: "Find features that depend on the future",
		Long: `Prepares the data up to several times as if nothing later existed and compares every feature, mask and price, to the bit,
with the preparation of all data. Names the features that differ and fails if there are any.

The check cannot see what the files themselves contain: a vendor's adjusted prices, or columns computed elsewhere.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, raw, err := a.readBars(args[0], sets)
			if err != nil {
				return err
			}
			r, err := prepared.Lookahead(cmd.Context(), c, raw, cuts)
			if err != nil {
				return err
			}
			if err := a.printLookahead(r); err != nil {
				return err
			}
			if len(r.Leaks) > 0 {
				return quietError{errCheckFailed}
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&sets, "set", nil, "edit the configuration")
	cmd.Flags().IntVar(&cuts, "cuts", 12, "number of times at which the data are cut, besides the ends of the ranges")
	return cmd
}

func (a *app) printLookahead(r *prepared.LookaheadReport) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "%d features and the masks and prices compared at %d cuts, %d values\n", r.Features, len(r.Cuts), r.Values)
	if len(r.Leaks) == 0 {
		_, err := fmt.Fprintln(a.out, "no value depends on later rows")
		return err
	}
	for _, l := range r.Leaks {
		if l.Cause == "normalisation" {
			fmt.Fprintf(a.out, "%s looks ahead by its normalisation: the mean is %v with all rows and %v with those up to %s\n", l.Feature, l.Full, l.Prefix, l.Cut)
			continue
		}
		fmt.Fprintf(a.out, "%s looks ahead: %s on %s is %v with all rows and %v with those up to %s (%s)\n", l.Feature, l.Symbol, l.Time, l.Full, l.Prefix, l.Cut, plural(l.Values, "value"))
	}
	return nil
}

func (a *app) dataWarmupCommand() *cobra.Command {
	var sets []string
	var starts []int
	var tolerance float64
	cmd := &cobra.Command{
		Use:   "warmup CONFIG.yaml",
		Short: "Find features that depend on where the data begin",
		Long: `Computes every feature from the last bars only, for several numbers of bars, and compares it with its value from all bars.
Shows how many bars each feature needs and fails if one still depends on the beginning at the longest history.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, raw, err := a.readBars(args[0], sets)
			if err != nil {
				return err
			}
			r, err := prepared.Warmup(cmd.Context(), c, raw, starts, tolerance)
			if err != nil {
				return err
			}
			if err := a.printWarmup(r); err != nil {
				return err
			}
			if len(r.Unsettled()) > 0 {
				return quietError{errCheckFailed}
			}
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&sets, "set", nil, "edit the configuration")
	cmd.Flags().IntSliceVar(&starts, "starts", prepared.DefaultStarts, "numbers of bars to compute features from, ascending")
	cmd.Flags().Float64Var(&tolerance, "tolerance", 1e-4, "largest difference, in standard deviations of the feature")
	return cmd
}

func (a *app) printWarmup(r *prepared.WarmupReport) error {
	if a.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "largest difference from the value of the whole history, in standard deviations, at %d points\n\n", r.Points)
	w := printable.NewNumbers(a.out)
	fmt.Fprint(w, "feature\twarm-up\t")
	for _, s := range r.Starts {
		fmt.Fprintf(w, "%d bars\t", s)
	}
	fmt.Fprintln(w, "needs\t")
	for _, f := range r.Features {
		fmt.Fprintf(w, "%s\t%d\t", f.Name, f.Warmup)
		for _, d := range f.Difference {
			switch {
			case d < 0:
				fmt.Fprint(w, "-\t")
			case d == math.MaxFloat64:
				fmt.Fprint(w, "undefined\t")
			case d == 0:
				fmt.Fprint(w, "0\t")
			default:
				fmt.Fprintf(w, "%.1e\t", d)
			}
		}
		needs := "never settles"
		if f.Needs > 0 {
			needs = fmt.Sprint(f.Needs)
		}
		fmt.Fprintf(w, "%s\t\n", needs)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if names := r.Unsettled(); len(names) > 0 {
		fmt.Fprintf(a.out, "\nthese features depend on where the data begin: %s\n", strings.Join(names, ", "))
	}
	return nil
}
