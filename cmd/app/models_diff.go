package app

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// differenceDoc is the difference of two versions, as JSON.
type differenceDoc struct {
	A string `json:"a"`
	B string `json:"b"`
	*artifact.Difference
}

func (a *app) modelsDiffCommand() *cobra.Command {
	var store storeFlag
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show the differences between two versions",
		Long: `Compares two versions: what their manifests say, inputs, outputs, metrics, each parameter by the largest |Δ|, and the graph.
The exit status is 1 when something differs.

` + referenceHelp,
		Example: `  onnxrl models diff runs/first/artifacts//qtmrl:best runs/second/artifacts//qtmrl:best`,
		Args:    cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			s, x, err := store.find(args[0])
			if err != nil {
				return err
			}
			defer s.Close()
			other, y, err := store.find(args[1])
			if err != nil {
				return err
			}
			defer other.Close()
			d, err := artifact.Diff(x, y)
			if err != nil {
				return err
			}
			if a.json {
				err = a.printJSON(differenceDoc{x.Manifest.Name + "@" + x.Digest, y.Manifest.Name + "@" + y.Digest, d})
			} else {
				err = printDifference(a.out, x, y, d)
			}
			if err == nil && !d.Empty() {
				return quietError{errCheckFailed}
			}
			return err
		},
	}
	store.add(cmd)
	return cmd
}

func printDifference(out io.Writer, x, y artifact.Version, d *artifact.Difference) error {
	if d.Empty() {
		_, err := fmt.Fprintln(out, "no difference")
		return err
	}
	w := printable.NewTable(out)
	fmt.Fprintf(w, "\t%s\t%s\n", x, y)
	for _, part := range []struct {
		title string
		list  []artifact.FieldChange
	}{{"", d.Fields}, {"", d.Ports}, {"file ", d.Files}} {
		for _, c := range part.list {
			fmt.Fprintf(w, "%s%s\t%s\t%s\n", part.title, printable.Name(c.Field), dash(brief(c.A)), dash(brief(c.B)))
		}
	}
	for _, m := range d.Metric {
		fmt.Fprintf(w, "%s\t%s\t%s\n", printable.Name(m.Name), measured(m.A), measured(m.B))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(d.Parameters) > 0 {
		w = printable.NewTable(out)
		fmt.Fprintln(w, "\nparameter\ta\tb\tchanged\tmax |Δ|")
		for _, p := range d.Parameters {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", printable.Name(p.Name), dash(p.A), dash(p.B), dash(nonZero(int64(p.Changed))), measured(p.MaxAbs))
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s equal\n", plural(d.Equal, "other parameter"))
	}
	if !d.Graph.Empty() {
		fmt.Fprintln(out)
	}
	return d.Graph.Fprint(out)
}

func measured(x *float64) string {
	if x == nil {
		return "-"
	}
	return fmt.Sprintf("%.6g", *x)
}

// brief shortens what does not fit a table, which --json shows as a whole.
func brief(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if strings.HasPrefix(s, "sha256:") {
		return artifact.Short(s)
	}
	const most = 48
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
