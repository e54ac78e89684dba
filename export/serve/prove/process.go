package prove

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"sync"

	"github.com/onnxrl/onnxrl/export/serve"
)

// Process tries versions in processes that it starts. It is safe for concurrent use.
type Process struct {
	// Argv is the program to start, with its arguments: one that calls [Main].
	Argv []string
	// Env is added to the environment of the program.
	Env []string

	mu     sync.Mutex
	proven map[[sha256.Size]byte]bool
	tried  int
}

// maxProven bounds what is remembered; with more, all is forgotten.
const maxProven = 10_000

// Tried is how many processes were started.
func (p *Process) Tried() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.tried
}

// Try tries a version unless the same was tried before, its weights aside. The error is a
// [*serve.CrashError] where the process died, and says why there was none where none could be
// started. What the engine refuses is no error: the server's own engine says it better. The process
// is killed when ctx ends.
func (p *Process) Try(ctx context.Context, t serve.Trial) error {
	data, digest, err := encode(t)
	if err != nil {
		return fmt.Errorf("encode the model for the process that tries it: %w", err)
	}
	p.mu.Lock()
	known := p.proven[digest]
	if !known {
		p.tried++
	}
	p.mu.Unlock()
	if known {
		return nil
	}
	if err := p.run(ctx, data); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proven == nil || len(p.proven) >= maxProven {
		p.proven = map[[sha256.Size]byte]bool{}
	}
	p.proven[digest] = true
	return nil
}

func (p *Process) run(ctx context.Context, data []byte) error {
	if len(p.Argv) == 0 {
		return errors.New("try the model: no program to start")
	}
	cmd := exec.CommandContext(ctx, p.Argv[0], p.Argv[1:]...)
	// Of a crash, the first line is enough.
	cmd.Env = append(append(os.Environ(), "GOTRACEBACK=none"), p.Env...)
	cmd.Stdin = bytes.NewReader(data)
	stderr := &head{}
	cmd.Stderr = stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("try the model: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("try the model in a process of its own: %w", err)
	}
	last := report{Stage: "starting"}
	for s := bufio.NewScanner(out); s.Scan(); {
		var r report
		if json.Unmarshal(s.Bytes(), &r) == nil {
			last = r
		}
	}
	err = cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case last.Done && err == nil:
		return nil
	case last.Stage == "starting" && err != nil && cmd.ProcessState.Exited() && cmd.ProcessState.ExitCode() == 1:
		// It ended by itself before it had anything to do with the model.
		return fmt.Errorf("try the model in a process of its own: %v: %s", err, firstLine(stderr.String()))
	}
	return &serve.CrashError{How: ending(cmd.ProcessState, stderr.String()), Stage: last.Stage, Killed: cmd.ProcessState.String() == "signal: killed"}
}

// head keeps the beginning of what is written.
type head struct{ bytes.Buffer }

func (h *head) Write(b []byte) (int, error) {
	if room := 16<<10 - h.Len(); room > 0 {
		h.Buffer.Write(b[:min(room, len(b))])
	}
	return len(b), nil
}

// reSignal finds the signal that Go's runtime names when code below it crashes.
var reSignal = regexp.MustCompile(`\bSIG[A-Z]{2,5}\b`)

// ending says how a process ended.
func ending(p *os.ProcessState, stderr string) string {
	if s := reSignal.FindString(stderr); s != "" {
		return s
	}
	if line := firstLine(stderr); line != "" {
		return fmt.Sprintf("%v (%s)", p, line)
	}
	return p.String()
}

func firstLine(s string) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace([]byte(s)), []byte("\n"))
	return string(line)
}
