package app

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

func (a *app) graphCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "graph", Short: "Look inside a model"}
	cmd.AddCommand(a.graphShowCommand(), a.graphStatsCommand(), a.graphDumpCommand(), a.graphDiffCommand(), a.graphCheckCommand(), a.graphExplainCommand(), a.graphDotCommand(), a.graphSVGCommand())
	return cmd
}

// graphShow is what onnxrl graph show prints; the JSON keys are stable.
type graphShow struct {
	Graph    string            `json:"graph"`
	Producer string            `json:"producer"`
	IR       int64             `json:"ir_version"`
	Opsets   map[string]int64  `json:"opsets"`
	Inputs   []string          `json:"inputs"`
	Outputs  []string          `json:"outputs"`
	Metadata map[string]string `json:"metadata,omitempty"`
	// Assumed are the symbolic extents of inputs that have no number and are counted as 1.
	Assumed map[string]int `json:"assumed,omitempty"`
	*onnx.Stats
	// Valid is false when graph check finds a problem; Problem is the first.
	Valid   bool   `json:"valid"`
	Problem string `json:"problem,omitempty"`
}

// show gathers what graph show and graph stats print.
func (a *app) show(path string, bind *bindFlags) (graphShow, error) {
	var s graphShow
	m, err := onnx.Load(path)
	if err != nil {
		return s, err
	}
	numbers, err := bind.parse()
	if err != nil {
		return s, err
	}
	types, err := a.inferred(path, m, numbers)
	if err != nil {
		return s, err
	}
	counted := types
	assumed := onesFor(m, numbers)
	if len(assumed) > 0 {
		quiet := *a
		quiet.err = io.Discard
		all := maps.Clone(numbers)
		maps.Copy(all, assumed)
		if counted, err = quiet.inferred(path, m, all); err != nil {
			return s, err
		}
	}
	s = graphShow{
		Assumed: assumed,
		Graph:   m.Graph.Name, Producer: strings.TrimSpace(m.ProducerName + " " + m.ProducerVersion), IR: m.IrVersion, Opsets: map[string]int64{}, Valid: true,
		Inputs: portList(m.Graph.Inputs(), types), Outputs: portList(m.Graph.Output, types), Stats: onnx.NewStats(m, counted),
	}
	for _, o := range m.OpsetImport {
		d := o.Domain
		if d == "" {
			d = "ai.onnx"
		}
		s.Opsets[d] = o.Version
	}
	for _, p := range m.MetadataProps {
		if s.Metadata == nil {
			s.Metadata = map[string]string{}
		}
		s.Metadata[p.Key] = p.Value
	}
	if c := examineModel(m, onnx.CheckOptions{}); !c.OK {
		s.Valid, s.Problem = false, c.Problems[0]
	}
	return s, nil
}

// verdict is what a command ends with that has shown the model: an error where graph check has one.
func (s *graphShow) verdict(printed error) error {
	if printed == nil && !s.Valid {
		return quietError{errCheckFailed}
	}
	return printed
}

func (a *app) graphShowCommand() *cobra.Command {
	var bind bindFlags
	cmd := &cobra.Command{
		Use:   "show MODEL",
		Short: "Inputs, outputs, parameters, operations and memory of a model",
		Long: `Shows a model at a glance. Operations and memory need numbers for symbolic extents: give them with --bind, those of inputs count as 1 otherwise.
Operations count a multiplication and an addition as two. Activations are the most memory that inputs and computed values take at once.
The exit status is 1 when 'onnxrl graph check' finds a problem.`,
		Example: `  onnxrl graph show policy.onnx --bind batch=1`,
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.show(args[0], &bind)
			if err != nil {
				return err
			}
			if a.json {
				return s.verdict(a.printJSON(s))
			}
			return s.verdict(printShow(a.out, s))
		},
	}
	bind.add(cmd)
	return cmd
}

func printShow(out io.Writer, s graphShow) error {
	w := printable.NewTable(out)
	row := func(k, format string, v ...any) {
		fmt.Fprintf(w, "%s\t%s\n", k, printable.Name(fmt.Sprintf(format, v...)))
	}
	row("graph", "%s", s.Graph)
	if s.Producer != "" {
		row("producer", "%s", s.Producer)
	}
	row("versions", "IR %d, %s", s.IR, joinSorted(s.Opsets, "%s %d"))
	for i, v := range s.Inputs {
		row([]string{"inputs", ""}[min(i, 1)], "%s", v)
	}
	for i, v := range s.Outputs {
		row([]string{"outputs", ""}[min(i, 1)], "%s", v)
	}
	row("parameters", "%d, %s", s.Parameters, byteSize(s.ParameterBytes))
	row("nodes", "%d", s.Nodes)
	for _, c := range s.OpCounts() {
		row("", "%d %s", c.Count, c.Op)
	}
	row("operations", "%s%s%s", count(s.FLOPs), s.assuming(), without(len(s.UnknownFLOPs), "node"))
	row("activations", "%s at %s%s%s", byteSize(s.PeakActivationBytes), s.PeakAt, s.assuming(), without(len(s.UnknownBytes), "value"))
	if s.Metadata != nil {
		row("metadata", "%s", joinSorted(s.Metadata, "%s=%s"))
	}
	if !s.Valid {
		row("not valid", "%s", s.Problem)
	}
	return w.Flush()
}

// onesFor gives 1 to the symbolic extents of inputs that have no number.
func onesFor(m *onnx.Model, bind map[string]int) map[string]int {
	ones := map[string]int{}
	for _, v := range m.GetGraph().Inputs() {
		t, _ := v.TensorType()
		for _, d := range t.Dims {
			if _, ok := bind[d.Param]; !ok && d.Param != "" {
				ones[d.Param] = 1
			}
		}
	}
	return ones
}

func (s graphShow) assuming() string {
	if len(s.Assumed) == 0 {
		return ""
	}
	return " with " + joinSorted(s.Assumed, "%s=%d")
}

func without(n int, noun string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(", without %s of unknown cost", plural(n, noun))
}

func (a *app) graphStatsCommand() *cobra.Command {
	var bind bindFlags
	cmd := &cobra.Command{
		Use:   "stats MODEL",
		Short: "Operations and parameters of every node",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := a.show(args[0], &bind)
			if err != nil {
				return err
			}
			if a.json {
				return s.verdict(a.printJSON(s.Stats))
			}
			w := printable.NewTable(a.out)
			fmt.Fprintln(w, "node\toperator\toutput\toperations\tshare\tparameters")
			for _, n := range s.PerNode {
				flops, share := "unknown", ""
				if n.FLOPs >= 0 {
					flops = count(n.FLOPs)
					if s.FLOPs > 0 {
						share = fmt.Sprintf("%.1f%%", 100*float64(n.FLOPs)/float64(s.FLOPs))
					}
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", printable.Name(n.Name), printable.Name(n.Op), printable.Name(fmt.Sprint(n.Output)), flops, share, byteSize(n.ParameterBytes))
			}
			fmt.Fprintf(w, "%s%s\t\t\t%s\t\t%s\n", plural(s.Nodes, "node"), s.assuming(), count(s.FLOPs), byteSize(s.ParameterBytes))
			if !s.Valid {
				fmt.Fprintf(w, "not valid: %s\n", s.Problem)
			}
			return s.verdict(w.Flush())
		},
	}
	bind.add(cmd)
	return cmd
}

// graphCheck is what onnxrl graph check prints; the JSON keys are stable.
type graphCheck struct {
	OK       bool     `json:"ok"`
	Problems []string `json:"problems"`
	Dropped  int      `json:"dropped,omitempty"`
	// Notes are about what is wrong and does no harm.
	Notes []string `json:"notes,omitempty"`
	// Unchecked lists operators without a schema.
	Unchecked []string `json:"unchecked,omitempty"`
}

func (a *app) graphCheckCommand() *cobra.Command {
	var o onnx.CheckOptions
	cmd := &cobra.Command{
		Use:   "check MODEL",
		Short: "List everything that is wrong with a model",
		Long: `Checks a model by the rules of the ONNX specification, infers all types, and looks for NaN and infinite weights. The exit status is 1 when there is a problem.
Scalars may be infinite: masks are made with them. A type that is declared for an inner value and contradicts the nodes is a note: it is left out.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			m, err := onnx.Load(args[0])
			if err != nil {
				return err
			}
			c := examineModel(m, o)
			if a.json {
				err = a.printJSON(c)
			} else {
				err = printGraphCheck(a.out, args[0], c)
			}
			if err == nil && !c.OK {
				return quietError{errCheckFailed}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "operators without a schema are problems")
	return cmd
}

func printGraphCheck(out io.Writer, path string, c graphCheck) error {
	var errs []error
	line := func(format string, v ...any) {
		_, err := fmt.Fprintf(out, format+"\n", v...)
		errs = append(errs, err)
	}
	for _, p := range c.Problems {
		line("%s", p)
	}
	if c.Dropped > 0 {
		line("… and %d more", c.Dropped)
	}
	for _, n := range c.Notes {
		line("note: %s", n)
	}
	if len(c.Unchecked) > 0 {
		line("not checked, because there is no schema: %s", strings.Join(c.Unchecked, ", "))
	}
	if c.OK {
		line("%s is valid", path)
	} else {
		line("%s has %s", path, plural(len(c.Problems)+c.Dropped, "problem"))
	}
	return errors.Join(errs...)
}
