package app

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/runtime/buildinfo"
	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// doctorReport is what onnxrl doctor prints; the JSON keys are stable.
type doctorReport struct {
	Version     string            `json:"version"`
	Go          string            `json:"go"`
	Platform    string            `json:"platform"`
	CPUs        int               `json:"cpus"`
	CPUFeatures []string          `json:"cpu_features"`
	Kernels     string            `json:"kernels"`
	Cgo         bool              `json:"cgo"`
	Engine      string            `json:"engine"`
	Library     string            `json:"library,omitempty"`
	LibrarySHA  string            `json:"library_sha256,omitempty"`
	Source      string            `json:"library_source,omitempty"`
	ORTVersion  string            `json:"onnxruntime_version,omitempty"`
	Providers   []string          `json:"providers,omitempty"`
	Candidates  []doctorCandidate `json:"candidates"`
	Clients     []doctorCandidate `json:"package_clients"`
	Advice      []string          `json:"advice,omitempty"`
}

type doctorCandidate struct {
	Name   string `json:"name"`
	Status string `json:"status"`
}

func (a *app) doctorCommand() *cobra.Command {
	var install bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Show engine, library and CPU, and what to do when one is missing",
		Long:  "Shows what this machine has and what would be installed. Nothing is installed unless --install is given. The exit status is 1 when ONNX Runtime cannot be used.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var failed *library.NotFoundError
			if install {
				_, err := a.namedEngine(cmd.Context(), ort.Name)
				if cmd.Context().Err() != nil {
					return err
				}
				errors.As(err, &failed)
			}
			r := a.examine(cmd, failed)
			if a.json {
				if err := a.printJSON(r); err != nil {
					return err
				}
			} else {
				a.printDoctor(r)
			}
			if r.Engine != ort.Name {
				return quietError{errors.New("ONNX Runtime cannot be used")}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&install, "install", false, "install ONNX Runtime now if it is missing")
	return cmd
}

// examine looks at everything; failed is the installation that was asked for and did not succeed,
// or nil.
func (a *app) examine(cmd *cobra.Command, failed *library.NotFoundError) doctorReport {
	r := doctorReport{
		Version: a.version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(),
		CPUFeatures: cpuFeatures(), Kernels: kernel.Active().String(), Cgo: ort.Cgo, Engine: "portable",
	}
	s := library.Status(a.library)
	for _, c := range s.Candidates {
		d := doctorCandidate{Name: fmt.Sprintf("%s: %s", c.Source, c.Path), Status: "usable"}
		if c.Err != nil {
			d.Status = c.Err.Error()
		}
		r.Candidates = append(r.Candidates, d)
	}
	for _, c := range s.Clients {
		d := doctorCandidate{Name: c.Client, Status: "ready"}
		if c.Err != nil {
			d.Status = c.Err.Error()
		}
		r.Clients = append(r.Clients, d)
	}
	// Opening without permission to install tells what a run would really use.
	c, err := ort.New(cmd.Context(), ort.Options{Library: library.Options{Path: a.library}})
	if err == nil {
		defer c.Close()
		r.Engine = ort.Name
		if info, err := ort.Info(); err == nil {
			r.Library, r.LibrarySHA, r.Source = info.Library.Path, info.Library.SHA256, string(info.Library.Source)
			r.ORTVersion, r.Providers = info.Version, info.Providers
		}
		return r
	}
	named, isNamed := s.Named()
	switch {
	case !ort.Cgo:
		r.Advice = append(r.Advice, "this program was built without cgo: build it with CGO_ENABLED=1 and a C compiler to use ONNX Runtime")
	case isNamed:
		// Nothing takes its place, not even the pure-Go engine, unless it is asked for.
		r.Engine = "none"
		if r.Advice = s.Advice(); named.Err == nil {
			r.Advice = append(r.Advice, err.Error())
		}
		r.Advice = append(r.Advice, "until then commands end with this error; --engine portable uses the pure-Go engine, which is slower")
		return r
	case failed != nil && !errors.Is(failed, library.ErrClientMissing):
		r.Advice = append(r.Advice, failed.Error(), failed.Hint())
	case len(s.Advice()) > 0:
		r.Advice = s.Advice()
	default:
		r.Advice = append(r.Advice, err.Error())
	}
	r.Advice = append(r.Advice, "until then the pure-Go engine is used, which is slower")
	return r
}

func (a *app) printDoctor(r doctorReport) {
	w := printable.NewTable(a.out)
	row := func(k, v string) { fmt.Fprintf(w, "%s\t%s\n", k, v) }
	row(a.name, r.Version+", "+r.Go+", "+r.Platform)
	row("cpu", fmt.Sprintf("%d cores, %s", r.CPUs, strings.Join(r.CPUFeatures, " ")))
	row("optimiser kernels", r.Kernels)
	row("engine", r.Engine)
	if r.Library != "" {
		row("library", r.Library+" ("+r.Source+")")
		row("onnx runtime", r.ORTVersion+", "+strings.Join(r.Providers, ", "))
	}
	for _, c := range r.Candidates {
		row("looked at", c.Name+": "+c.Status)
	}
	for _, c := range r.Clients {
		row("package client", c.Name+": "+c.Status)
	}
	w.Flush()
	for _, s := range r.Advice {
		fmt.Fprintln(a.out, s)
	}
}

// version is the version of the program.
var version = buildinfo.Version
