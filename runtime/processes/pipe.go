package processes

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// Pipe is a program that serves its parent on its standard input and output.
type Pipe struct {
	cmd    *exec.Cmd
	in     io.Closer
	write  io.Writer
	out    *os.File
	errors *Tail
	done   chan struct{}
}

// leave is how long a program may take to end by itself.
const leave = 3 * time.Second

// Start starts a command that serves its parent on its standard input and output. What it writes to
// standard error goes to cmd.Stderr, if that is set, and the end of it into [Pipe.Ending].
func Start(cmd *exec.Cmd) (*Pipe, error) {
	p := &Pipe{cmd: cmd, errors: &Tail{Limit: 2048, Copy: cmd.Stderr}, done: make(chan struct{})}
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
	// Processes that this one has started may keep its output open.
	cmd.WaitDelay = 200 * time.Millisecond
	err = cmd.Start()
	theirs.Close()
	if err != nil {
		out.Close()
		return nil, err
	}
	go func() {
		// How it ended is read from ProcessState.
		_ = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Read reads what the program writes to its standard output.
func (p *Pipe) Read(b []byte) (int, error) { return p.out.Read(b) }

// Write writes to its standard input.
func (p *Pipe) Write(b []byte) (int, error) { return p.write.Write(b) }

// Where is the address of the machine that it runs on: empty, for this one.
func (p *Pipe) Where() string { return "" }

// Ending waits a little for the end of the program and says how it has ended, for errors.
func (p *Pipe) Ending() string {
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

// Close ends the input of the program, which ends by itself then, or is killed.
func (p *Pipe) Close() error {
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
