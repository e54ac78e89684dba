package benchmark

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Output is what --out and --check ask to be done with a report.
type Output struct {
	file  string
	check bool
}

// AddFlags defines --out and --check.
func (o *Output) AddFlags(f *pflag.FlagSet) {
	f.BoolVar(&o.check, "check", false, "exit with status 1 when a target is missed")
	f.StringVarP(&o.file, "out", "o", "", "also write the raw figures to this JSON file")
}

// Save writes the report as JSON to the file of --out, where there is one.
func (o *Output) Save(report any) error {
	if o.file == "" {
		return nil
	}
	err := atomicfile.WriteFile(o.file, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(report)
	})
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}

// Verdict is an error where targets are missed that --check asks for.
func (o *Output) Verdict(missed int) error {
	if o.check && missed > 0 {
		return errors.New("targets are missed")
	}
	return nil
}
