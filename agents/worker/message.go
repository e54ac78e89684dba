package worker

import (
	"crypto/sha256"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/runtime/buildinfo"
)

// protocol is raised when messages change so that an older side would misunderstand them.
const protocol = 1

// message is one line, a JSON object with one of these. A worker sends hello, alive, progress,
// evaluated, note and result, and is sent job, answer and cancel.
type message struct {
	Hello     *Hello          `json:"hello,omitempty"`
	Alive     bool            `json:"alive,omitempty"`
	Job       *run.Job        `json:"job,omitempty"`
	Progress  *train.Progress `json:"progress,omitempty"`
	Evaluated *evaluated      `json:"evaluated,omitempty"`
	// Answer is that to evaluated: go on, or stop.
	Answer string  `json:"answer,omitempty"`
	Cancel bool    `json:"cancel,omitempty"`
	Note   string  `json:"note,omitempty"`
	Result *result `json:"result,omitempty"`
}

// The answers to evaluated.
const (
	goOn = "go on"
	stop = "stop"
)

type evaluated struct {
	EnvSteps int64          `json:"env_steps"`
	Metrics  agents.Metrics `json:"metrics"`
}

type result struct {
	Result  run.Result `json:"result"`
	Failure *Failure   `json:"failure,omitempty"`
}

// Hello is what a worker says of itself; the JSON keys are stable.
type Hello struct {
	Protocol int            `json:"protocol"`
	Build    buildinfo.Info `json:"build"`
	// Engine runs the networks, by name and version. Platform is the operating system, the
	// architecture and what of the processor changes the last bits of results.
	Engine   string `json:"engine"`
	Platform string `json:"platform"`
}

// Fits reports why a worker's results may not be those of another one, or of this process: an error
// for another protocol or build, and a sentence for what only changes the last bits.
func (h Hello) Fits(other Hello) (differs string, err error) {
	switch {
	case h.Protocol != other.Protocol:
		return "", fmt.Errorf("the worker speaks protocol %d, expected %d: its program is another version", other.Protocol, h.Protocol)
	case !h.Build.Same(other.Build):
		return "", fmt.Errorf("the worker's program is %v, expected %v", other.Build, h.Build)
	case h.Engine != other.Engine:
		return fmt.Sprintf("the worker's engine is %s, and here it is %s: results may differ in the last bits", other.Engine, h.Engine), nil
	case h.Platform != other.Platform:
		return fmt.Sprintf("the worker runs on %s, and this is %s: results may differ in the last bits", other.Platform, h.Platform), nil
	}
	return "", nil
}

// Kind is a word that two processes share if, and only if, their results have the same bits: the
// beginning of the build's digest, a dot, and that of engine and platform.
func (h Hello) Kind() string {
	sum := sha256.Sum256([]byte(h.Engine + "\n" + h.Platform))
	return fmt.Sprintf("%d-%.16s.%x", h.Protocol, h.Build.Digest, sum[:4])
}

// NewHello is what this process says of itself: its engine, by name and version, and its platform.
func NewHello(engine, platform string) Hello {
	return Hello{Protocol: protocol, Build: buildinfo.This(), Engine: engine, Platform: platform}
}
