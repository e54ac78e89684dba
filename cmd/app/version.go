package app

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/buildinfo"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
)

// versionReport is what onnxrl version prints; the JSON keys are stable. Its first keys are those
// of the program in the lineage of what is published.
type versionReport struct {
	buildinfo.Info
	Platform string `json:"platform"`
	Cgo      bool   `json:"cgo"`
	// ORTVersion is that of the ONNX Runtime that is installed where there is none.
	ORTVersion string `json:"onnxruntime_version"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of the program, and of what it was built from",
		Long:  `Shows the version of the program, as artefacts and reports have it: the tag of a release, else the revision of the sources. onnxrl doctor shows what the machine has.`,
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

func (a *app) printVersion() error {
	r := versionReport{Info: buildinfo.This(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Cgo: ort.Cgo, ORTVersion: library.Version}
	r.Version = a.version
	if a.json {
		return a.printJSON(r)
	}
	sources := ""
	switch {
	case r.Revision != "" && r.Modified:
		sources = " (revision " + r.Revision + ", modified)"
	case r.Revision != "":
		sources = " (revision " + r.Revision + ")"
	}
	cgo := "with cgo"
	if !r.Cgo {
		cgo = "without cgo"
	}
	_, err := fmt.Fprintf(a.out, "%s %s%s, %s, %s, %s, for ONNX Runtime %s\n", a.name, r.Version, sources, r.Go, r.Platform, cgo, r.ORTVersion)
	return err
}
