//go:build unix

package library

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestInstallFromEachClient(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(*world)
		calls   []string // prefixes
	}{
		{"npm", func(w *world) {
			w.write("served/p.tgz", w.tgz(npmEntry, w.library), 0o644)
			w.client("npm", deliverNPM)
			w.client("pip3", "exit 9")
		}, []string{"npm pack onnxruntime-node@" + Version}},
		{"npm missing", func(w *world) {
			w.write("served/p.whl", w.whl(pipEntry, w.library), 0o644)
			w.client("pip3", deliverPip)
		}, []string{"pip3 download"}},
		{"only python", func(w *world) {
			w.write("served/p.whl", w.whl(pipEntry, w.library), 0o644)
			w.client("python3", `[ "$*" = "-m pip --version" ] || `+deliverPip)
		}, []string{"python3 -m pip --version", "python3 -m pip download"}},
		{"npm fails", func(w *world) {
			w.write("served/p.whl", w.whl(pipEntry, w.library), 0o644)
			w.client("npm", "echo 'no route' >&2; exit 1")
			w.client("pip", deliverPip)
		}, []string{"npm pack", "pip download"}},
		{"npm delivers a wrong file", func(w *world) {
			wrong := append([]byte(nil), w.library...)
			wrong[len(wrong)/2] ^= 1
			w.write("served/p.tgz", w.tgz(npmEntry, wrong), 0o644)
			w.write("served/p.whl", w.whl(pipEntry, w.library), 0o644)
			w.client("npm", deliverNPM)
			w.client("pip3", deliverPip)
		}, []string{"npm pack", "pip3 download"}},
		{"npm warns beside its answer", func(w *world) {
			w.write("served/p.tgz", w.tgz(npmEntry, w.library), 0o644)
			w.client("npm", "echo 'warn something'; touch notes.txt; "+deliverNPM)
		}, []string{"npm pack"}},
	}
	ran := 0
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ran++
			w := newWorld(t)
			c.prepare(w)
			var phases []Phase
			found, err := w.l.locate(t.Context(), Options{AllowInstall: true, Progress: func(p Progress) {
				phases = append(phases, p.Phase)
				if p.Total > 0 && p.Bytes > p.Total {
					t.Errorf("progress %d of %d bytes", p.Bytes, p.Total)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			want := Found{Path: w.installedPath(), Version: Version, Source: SourceInstalled, SHA256: sum(w.library)}
			if found != want {
				t.Errorf("found %+v, expected %+v", found, want)
			}
			w.wantInstalled()
			if len(phases) < 3 || phases[0] != PhaseDownloading || phases[len(phases)-1] != PhaseDone {
				t.Errorf("phases %v", phases)
			}
			calls := w.calls()
			if len(calls) != len(c.calls) {
				t.Fatalf("calls %q, expected %q", calls, c.calls)
			}
			for i := range calls {
				if !strings.HasPrefix(calls[i], c.calls[i]) {
					t.Errorf("call %q, expected %q", calls[i], c.calls[i])
				}
			}
			// The second use touches no client.
			again, err := w.l.locate(t.Context(), Options{AllowInstall: true})
			if err != nil || again.Source != SourceCache || again.Path != found.Path || again.SHA256 != found.SHA256 {
				t.Errorf("second use: %+v, %v", again, err)
			}
			if n := len(w.calls()); n != len(c.calls) {
				t.Errorf("second use ran a client: %q", w.calls())
			}
		})
	}
	if ran != 6 {
		t.Fatalf("%d cases ran, expected 6", ran)
	}
}

func TestInstallFailuresLeaveNothing(t *testing.T) {
	cases := []struct {
		name    string
		prepare func(*world)
		is      error
		says    []string
		hint    string
	}{
		{"no client", func(*world) {}, ErrClientMissing, []string{"npm", "pip"}, "install npm or pip"},
		{"offline", func(w *world) {
			w.client("npm", "echo 'network unreachable' >&2; exit 1")
			w.client("pip3", "echo 'no matching distribution' >&2; exit 1")
		}, ErrNotFound, []string{"npm pack", "pip3 download", "exit status 1"}, "network"},
		{"wrong content", func(w *world) {
			wrong := make([]byte, len(w.library))
			w.write("served/p.tgz", w.tgz(npmEntry, wrong), 0o644)
			w.client("npm", deliverNPM)
		}, ErrChecksum, []string{sum(make([]byte, librarySize))}, "mirror"},
		{"wrong size", func(w *world) {
			w.write("served/p.tgz", w.tgz(npmEntry, w.library[1:]), 0o644)
			w.client("npm", deliverNPM)
		}, ErrChecksum, []string{"307199 bytes"}, "mirror"},
		{"truncated tgz", func(w *world) {
			data := w.tgz(npmEntry, w.library)
			w.write("served/p.tgz", data[:len(data)/2], 0o644)
			w.client("npm", deliverNPM)
		}, ErrNotFound, []string{"unexpected EOF"}, "network"},
		{"truncated whl", func(w *world) {
			data := w.whl(pipEntry, w.library)
			w.write("served/p.whl", data[:len(data)/2], 0o644)
			w.client("pip3", deliverPip)
		}, ErrNotFound, []string{"read package onnxruntime.whl"}, "network"},
		{"entry missing", func(w *world) {
			w.write("served/p.tgz", w.tgz("package/other", w.library), 0o644)
			w.client("npm", deliverNPM)
		}, ErrNotFound, []string{"no entry " + npmEntry}, "network"},
		{"nothing delivered", func(w *world) { w.client("npm", "exit 0") },
			ErrNotFound, []string{"0 packages delivered"}, "network"},
	}
	ran := 0
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ran++
			w := newWorld(t)
			c.prepare(w)
			_, err := w.l.locate(t.Context(), Options{AllowInstall: true})
			var missing *NotFoundError
			if !errors.As(err, &missing) || !errors.Is(err, ErrNotFound) || !errors.Is(err, c.is) {
				t.Fatalf("error %v, expected %v", err, c.is)
			}
			if len(missing.Attempts) != 2 {
				t.Errorf("%d attempts, expected 2", len(missing.Attempts))
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
			if !strings.Contains(missing.Hint(), c.hint) || !strings.Contains(missing.Hint(), EnvLibrary) {
				t.Errorf("hint %q, expected %q", missing.Hint(), c.hint)
			}
			w.wantOnly("lock")
		})
	}
	if ran != 8 {
		t.Fatalf("%d cases ran, expected 8", ran)
	}
}

func TestClientOutputIsKept(t *testing.T) {
	w := newWorld(t)
	w.client("npm", "echo 'npm error network unreachable' >&2; exit 1")
	_, err := w.l.locate(t.Context(), Options{AllowInstall: true})
	var missing *NotFoundError
	if !errors.As(err, &missing) || missing.Attempts[0].Output != "npm error network unreachable" {
		t.Fatalf("error %#v", err)
	}
}

func TestInstallForbidden(t *testing.T) {
	for _, value := range []string{"off", "0", "No", " false "} {
		w := newWorld(t)
		w.client("npm", deliverNPM)
		w.l.getenv = func(k string) string {
			if k == EnvInstall {
				return value
			}
			return ""
		}
		_, err := w.l.locate(t.Context(), Options{AllowInstall: true})
		if !errors.Is(err, ErrInstallDisabled) || !errors.Is(err, ErrNotFound) {
			t.Errorf("%s=%q: %v", EnvInstall, value, err)
		}
		if len(w.calls()) != 0 {
			t.Errorf("%s=%q ran %v", EnvInstall, value, w.calls())
		}
	}
	w := newWorld(t)
	w.client("npm", deliverNPM)
	if _, err := w.l.locate(t.Context(), Options{}); !errors.Is(err, ErrInstallDisabled) || len(w.calls()) != 0 {
		t.Errorf("zero options: %v, calls %v", err, w.calls())
	}
}

// A damaged library in the cache is replaced, not used.
func TestDamagedCacheIsReplaced(t *testing.T) {
	for name, damage := range sorted.All(map[string]func([]byte) []byte{
		"truncated": func(b []byte) []byte { return b[:len(b)-1] },
		"flipped":   func(b []byte) []byte { b[7] ^= 4; return b },
		"empty":     func([]byte) []byte { return nil },
	}) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("served/p.tgz", w.tgz(npmEntry, w.library), 0o644)
			w.client("npm", deliverNPM)
			if err := os.MkdirAll(w.l.cacheDir(), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(w.installedPath(), damage(append([]byte(nil), w.library...)), 0o755); err != nil {
				t.Fatal(err)
			}
			if _, err := w.l.locate(t.Context(), Options{}); !errors.Is(err, ErrNotFound) {
				t.Fatalf("without installing: %v", err)
			}
			found, err := w.l.locate(t.Context(), Options{AllowInstall: true})
			if err != nil || found.Source != SourceInstalled {
				t.Fatalf("%+v, %v", found, err)
			}
			w.wantInstalled()
		})
	}
}

func TestCancelledInstallLeavesNothing(t *testing.T) {
	w := newWorld(t)
	started := filepath.Join(w.root, "started")
	if err := syscall.Mkfifo(started, 0o600); err != nil {
		t.Fatal(err)
	}
	w.client("npm", fmt.Sprintf("echo partial >package.tgz\necho up >%q\nexec sleep 600", started))
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("person pressed the key")
	go func() {
		os.ReadFile(started) // returns once the client has started
		cancel(reason)
	}()
	if _, err := w.l.locate(ctx, Options{AllowInstall: true}); !errors.Is(err, reason) {
		t.Fatalf("error %v, expected %v", err, reason)
	}
	w.wantOnly("lock")
}

func (w *world) helper(routines int, stall bool) *exec.Cmd {
	w.t.Helper()
	spec, err := json.Marshal(installerSpec{Root: w.root, Size: int64(len(w.library)), SHA256: sum(w.library), Routines: routines, Stall: stall})
	if err != nil {
		w.t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), envHelper+"="+string(spec))
	cmd.Stderr = os.Stderr
	return cmd
}

func TestConcurrentFirstUsesInstallOnce(t *testing.T) {
	w := newWorld(t)
	w.write("served/p.tgz", w.tgz(npmEntry, w.library), 0o644)
	w.client("npm", deliverNPM)
	const processes, routines = 4, 3
	outputs := make([]string, processes)
	var wg sync.WaitGroup
	for i := range processes {
		cmd := w.helper(routines, false)
		wg.Go(func() {
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("process %d: %v", i, err)
			}
			outputs[i] = string(out)
		})
	}
	wg.Wait()
	counts := map[Source]int{}
	for line := range strings.Lines(strings.Join(outputs, "")) {
		f := strings.Fields(line)
		if len(f) != 4 || f[0] != "found" || f[2] != sum(w.library) || f[3] != w.installedPath() {
			t.Errorf("unexpected answer %q", line)
			continue
		}
		counts[Source(f[1])]++
	}
	if counts[SourceInstalled] != 1 || counts[SourceInstalled]+counts[SourceCache] != processes*routines {
		t.Errorf("answers by source: %v, expected 1 installed of %d", counts, processes*routines)
	}
	if calls := w.calls(); len(calls) != 1 {
		t.Errorf("%d clients ran, expected 1: %q", len(calls), calls)
	}
	w.wantInstalled()
}

func TestKilledInstallLeavesNoHalfFile(t *testing.T) {
	w := newWorld(t)
	w.write("served/p.tgz", w.tgz(npmEntry, w.library), 0o644)
	w.client("npm", deliverNPM)
	cmd := w.helper(1, true)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "extracting\n" {
		t.Fatalf("helper said %q, %v", line, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	if _, err := os.Stat(w.installedPath()); !os.IsNotExist(err) {
		t.Fatalf("a killed installation left %s (%v)", w.installedPath(), err)
	}
	left, err := filepath.Glob(filepath.Join(w.l.cacheDir(), scratchPrefix+"*"))
	if err != nil || len(left) != 1 {
		t.Fatalf("scratch directories %v, %v; expected the killed one", left, err)
	}
	found, err := w.l.locate(t.Context(), Options{AllowInstall: true})
	if err != nil || found.Source != SourceInstalled {
		t.Fatalf("after the kill: %+v, %v", found, err)
	}
	w.wantInstalled()
}

func TestUnwritableCacheIsExplained(t *testing.T) {
	w := newWorld(t)
	w.client("npm", deliverNPM)
	w.l.cacheRoot = w.write("file", nil, 0o644) // a file where a directory is needed
	_, err := w.l.locate(t.Context(), Options{AllowInstall: true})
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "create cache") {
		t.Fatalf("error %v", err)
	}
}
