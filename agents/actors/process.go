package actors

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/onnxrl/onnxrl/runtime/processes"
)

// Conn is a connection to where an actor is served, see [Serve]. Close has it end, and may be
// called while something is read.
type Conn interface {
	io.ReadWriteCloser
	// Ending says how it has ended, for errors.
	Ending() string
	// Where is the address of another machine, for errors; empty is this one.
	Where() string
}

// process is a program that serves an actor on its standard input and output.
type process struct {
	cmd    *exec.Cmd
	in     io.Closer
	write  io.Writer
	out    *os.File
	errors *processes.Tail
	done   chan struct{}
}

// leave is how long a process may take to end by itself.
const leave = 3 * time.Second

// Command starts a command that serves an actor on its standard input and output. What it writes to
// standard error goes to cmd.Stderr, if that is set, and the end of it into errors.
func Command(cmd *exec.Cmd) (Conn, error) {
	p := &process{cmd: cmd, errors: &processes.Tail{Limit: 2048, Copy: cmd.Stderr}, done: make(chan struct{})}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.write = in, in
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.out = out
	cmd.Stdout, cmd.Stderr = theirs, p.errors
	// What the process has started may keep its output open.
	cmd.WaitDelay = 200 * time.Millisecond
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("start the process of an actor: %w", err)
	}
	go func() {
		// How it ended is read from ProcessState.
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p *process) Write(b []byte) (int, error) { return p.write.Write(b) }

// Where implements Conn.
func (p *process) Where() string { return "" }

// Ending implements Conn.
func (p *process) Ending() string {
	select {
	case <-p.done:
	case <-time.After(leave):
		return "the process does not answer"
	}
	if text := p.errors.String(); text != "" {
		return fmt.Sprintf("%v: %s", p.cmd.ProcessState, text)
	}
	return p.cmd.ProcessState.String()
}

// Close implements Conn: a process whose input has ended does so too, or is killed.
func (p *process) Close() error {
	p.in.Close()
	select {
	case <-p.done:
	case <-time.After(leave):
		// It may have ended just now.
		_ = p.cmd.Process.Kill()
		<-p.done
	}
	return p.out.Close()
}
