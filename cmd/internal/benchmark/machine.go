package benchmark

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
	"github.com/onnxrl/onnxrl/runtime/ort"
)

// Machine says what the figures were measured on.
type Machine struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	OS      string `json:"os"`
	Go      string `json:"go"`
	ORT     string `json:"onnxruntime"`
	Kernels string `json:"kernels"`
	// Load is the system's load average over one minute when the run began, where the system tells.
	// Above zero, figures are disturbed.
	Load string `json:"load,omitempty"`
}

// String is one line.
func (m Machine) String() string {
	s := fmt.Sprintf("%s, %d cores, %s, %s, ONNX Runtime %s, optimiser kernels %s", m.CPU, m.Cores, m.OS, m.Go, m.ORT, m.Kernels)
	if m.Load != "" {
		s += ", load " + m.Load
	}
	return s
}

// ThisMachine describes the machine and what of it the program uses.
func ThisMachine() Machine {
	m := Machine{CPU: cpuModel(), Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), ORT: "unknown", Kernels: kernel.Active().String()}
	if info, err := ort.Info(); err == nil {
		m.ORT = info.Version
	}
	if b, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.Load, _, _ = strings.Cut(string(b), " ")
	}
	return m
}

// cpuModel is the processor's name where the system tells, else the architecture.
func cpuModel() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if k, v, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

// ResidentBytes returns the resident set size of this process, or false where the system does not
// tell.
func ResidentBytes() (int64, bool) {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(b))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
