package gymnasium

import (
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/runtime/processes"
)

//go:embed saving.py
var savingSource []byte

//go:embed worker.py
var workerSource []byte

// bootstrap runs the source that lies in the memory file, so that no file of it has to be
// installed. With -c, Python finds packages in the working directory too.
const bootstrap = `exec(compile(open(3, encoding="utf-8", closefd=False).read(), "<onnxrl worker>", "exec"))`

// The requests of one byte. Everything else is a call: a name and arguments as JSON.
const (
	opStep  = 'S'
	opReset = 'R'
	opCall  = 'C'
)

// patience is how long a process may take to end after it was asked to, and to say what it is
// doing.
const patience = 3 * time.Second

// process is a running worker.py. It is not safe for concurrent use, except kill.
type process struct {
	cmd      *exec.Cmd
	memory   *os.File
	shared   []byte
	requests *os.File
	replies  *os.File
	output   *processes.Tail
	// done is closed when the process has ended.
	done  chan struct{}
	byte  [1]byte
	watch *watch
	end   sync.Once
}

var errNoPython = errors.New("no Python interpreter")

// findPython returns the interpreter: the configured one, $ONNXRL_PYTHON, or python3 or python of
// the path.
func findPython(configured string) (string, error) {
	for _, from := range []struct{ name, what string }{{configured, "python"}, {os.Getenv("ONNXRL_PYTHON"), "$ONNXRL_PYTHON"}} {
		if from.name == "" {
			continue
		}
		path, err := exec.LookPath(from.name)
		if err != nil {
			return "", fmt.Errorf("%w: %s: %w", errNoPython, from.what, err)
		}
		return path, nil
	}
	for _, name := range []string{"python3", "python"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%w: there is no python3 on the path; install Python 3.8 or newer with the package gymnasium, or name an interpreter as python or in $ONNXRL_PYTHON", errNoPython)
}

// startProcess runs the worker with an interpreter, and an adapter unless it is empty.
func startProcess(python string, adapter []byte, print bool) (_ *process, err error) {
	p := &process{output: &processes.Tail{Limit: 4096}, done: make(chan struct{})}
	if print {
		p.output.Copy = os.Stderr
	}
	if p.memory, err = memoryFile(); err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	files := []*os.File{p.memory}
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Close()
			}
		}
	}()
	// Not Write: the process shares the position in the file and reads from the beginning.
	if _, err := p.memory.WriteAt(slices.Concat(savingSource, adapter, workerSource), 0); err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	theirRequests, requests, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files = append(files, theirRequests, requests)
	replies, theirReplies, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files = append(files, replies, theirReplies)
	p.requests, p.replies = requests, replies
	if p.watch, err = newWatch(replies, p.byte[:]); err != nil {
		return nil, err
	}

	p.cmd = exec.Command(python, "-u", "-c", bootstrap)
	p.cmd.ExtraFiles = []*os.File{p.memory, theirRequests, theirReplies}
	p.cmd.Env = environment(os.Environ())
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	// Processes that this one has started may keep its output open.
	p.cmd.WaitDelay = 200 * time.Millisecond
	processes.Apart(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start python: %w", err)
	}
	theirRequests.Close()
	theirReplies.Close()
	go func() {
		// How it ended is read from ProcessState.
		_ = p.cmd.Wait()
		close(p.done)
		// Something that the process has started may keep the pipe open too, and then there would
		// be no end of file.
		_ = p.replies.SetReadDeadline(time.Unix(1, 0))
	}()
	return p, nil
}

// environment adds what workers should have unless the user says otherwise: one thread for linear
// algebra each, since there are several of them, and no greeting of pygame's.
func environment(env []string) []string {
	out := make([]string, 0, len(env)+4)
	for _, name := range []string{"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "PYGAME_HIDE_SUPPORT_PROMPT"} {
		out = append(out, name+"=1")
	}
	return append(out, env...)
}

// begin sends a request of one byte.
func (p *process) begin(op byte) error {
	p.byte[0] = op
	if _, err := p.requests.Write(p.byte[:]); err != nil {
		return p.gone(err)
	}
	return nil
}

// finish waits for the reply to a request of one byte.
func (p *process) finish(timeout time.Duration) error {
	code, err := p.reply(timeout)
	if err != nil || code == '.' {
		return err
	}
	return p.body(code, nil)
}

// call sends a call and decodes its result into out, unless that is nil.
func (p *process) call(timeout time.Duration, name string, args map[string]any, out any) error {
	body := map[string]any{"call": name}
	for k, v := range args {
		body[k] = v
	}
	data, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("call %s: %w", name, err)
	}
	message := append(binary.LittleEndian.AppendUint32([]byte{opCall}, uint32(len(data))), data...)
	if err := p.requests.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return p.gone(err)
	}
	if _, err := p.requests.Write(message); err != nil {
		return p.gone(err)
	}
	// Requests of one byte fit the pipe and have no deadline: this one would end the process at the
	// first of them after it.
	if err := p.requests.SetWriteDeadline(time.Time{}); err != nil {
		return p.gone(err)
	}
	code, err := p.reply(timeout)
	if err != nil {
		return err
	}
	return p.body(code, out)
}

// reply reads the first byte of a reply.
func (p *process) reply(timeout time.Duration) (byte, error) {
	if err := p.replies.SetReadDeadline(time.Now().Add(timeout)); err != nil {
		return 0, p.gone(err)
	}
	// The end of the process sets the deadline too: if that was just overwritten, done is closed by
	// now.
	select {
	case <-p.done:
		return 0, p.gone(nil)
	default:
	}
	err := p.watch.read()
	if errors.Is(err, os.ErrDeadlineExceeded) && !p.wait(0) {
		// This process may have been stopped for longer than the timeout while the reply lay there.
		if err = p.replies.SetReadDeadline(time.Now().Add(patience / 10)); err == nil {
			err = p.watch.read()
		}
	}
	if err != nil {
		return 0, p.gone(err)
	}
	return p.byte[0], nil
}

// body reads the rest of a reply of JSON.
func (p *process) body(code byte, out any) error {
	var size [4]byte
	if _, err := io.ReadFull(p.replies, size[:]); err != nil {
		return p.gone(err)
	}
	data := make([]byte, binary.LittleEndian.Uint32(size[:]))
	if _, err := io.ReadFull(p.replies, data); err != nil {
		return p.gone(err)
	}
	if code == 'E' {
		e := &PythonError{}
		if err := json.Unmarshal(data, e); err != nil {
			return fmt.Errorf("python process %d: %w", p.cmd.Process.Pid, err)
		}
		return e
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("python process %d: %w", p.cmd.Process.Pid, err)
	}
	return nil
}

// gone ends a process that does not answer, and says why it does not. err is what a read or write
// has met.
func (p *process) gone(err error) error {
	e := &WorkerError{Pid: p.cmd.Process.Pid}
	late := false
	if !p.wait(0) {
		if late = errors.Is(err, os.ErrDeadlineExceeded); !late {
			// Its pipes are closed, so it has ended or is about to.
			p.wait(patience)
		} else if askWhere(p.cmd.Process) == nil {
			p.wait(patience / 10)
		}
	}
	p.kill()
	if late && p.cmd.ProcessState.ExitCode() < 0 {
		e.Reason = "did not answer in time and was ended"
	} else {
		e.Reason = "has ended: " + p.cmd.ProcessState.String()
	}
	e.Output = p.output.String()
	return e
}

// wait reports whether the process ends within a time.
func (p *process) wait(d time.Duration) bool {
	select {
	case <-p.done:
		return true
	default:
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true
	case <-t.C:
		return false
	}
}

// kill ends the process and what it has started, and waits for its end. Killing again does nothing.
func (p *process) kill() {
	p.end.Do(func() {
		// An error would say that it has ended already.
		_ = processes.Kill(p.cmd.Process)
		<-p.done
	})
}

// share gives the memory file its final size and maps it. The process has read its source by now.
func (p *process) share(size int) error {
	if err := errors.Join(p.memory.Truncate(0), p.memory.Truncate(int64(size))); err != nil {
		return fmt.Errorf("shared memory of %d bytes: %w", size, err)
	}
	var err error
	if p.shared, err = mapShared(p.memory, size); err != nil {
		return fmt.Errorf("shared memory of %d bytes: %w", size, err)
	}
	return nil
}

// unshare undoes share. Nothing may use the memory any more.
func (p *process) unshare() error {
	if p.shared == nil {
		return nil
	}
	b := p.shared
	p.shared = nil
	return unmapShared(b)
}

// close asks the process to close its environments and to end, and ends it when it does not.
// Nothing may use the shared memory any more.
func (p *process) close() error {
	var err error
	if !p.wait(0) {
		err = p.call(patience, "close", nil, nil)
		if ended(err) {
			err = nil
		}
		p.wait(patience)
	}
	p.kill()
	return errors.Join(err, p.unshare(), p.memory.Close(), p.requests.Close(), p.replies.Close())
}
