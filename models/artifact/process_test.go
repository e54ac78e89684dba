package artifact

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"onnxrl/runtime/atomicfile"
)

// kills is how many publishing processes are killed.
const kills = 40

// What a child process is asked for: a store's directory, and how many versions of which name it publishes; without a number it publishes until it is killed.
const (
	childDir   = "ARTIFACT_TEST_DIR"
	childName  = "ARTIFACT_TEST_NAME"
	childCount = "ARTIFACT_TEST_COUNT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := publishInChild(dir, os.Getenv(childName), os.Getenv(childCount)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// publishInChild says on standard output when a version is published.
func publishInChild(dir, name, count string) error {
	disk := atomicfile.OS
	n, forever := 0, count == ""
	if forever {
		disk = tickingDisk{disk}
	} else if _, err := fmt.Sscan(count, &n); err != nil {
		return err
	}
	s, err := Open(dir, Options{Disk: disk, Now: clock()})
	if err != nil {
		return err
	}
	list, err := s.List()
	if err != nil {
		return err
	}
	for i := len(list); forever || n > 0; i++ {
		d := Draft{Manifest: Manifest{Name: name, Kind: "model", EnvStep: int64(i)}, ModelBytes: modelBytes(4000, float32(i)), Golden: golden(4000, float32(i))}
		if i%2 == 0 {
			d.Aliases = []string{"best"}
		}
		if _, err := s.Publish(context.Background(), d); err != nil {
			return err
		}
		os.Stdout.Write([]byte{'+'})
		n--
	}
	return nil
}

// tickingDisk reports every operation on standard output, so that the parent can kill in the middle of any of them without looking at a clock.
type tickingDisk struct{ atomicfile.Disk }

func tick() { os.Stdout.Write([]byte{'.'}) }

func (d tickingDisk) Create(path string) (atomicfile.File, error) {
	tick()
	f, err := d.Disk.Create(path)
	return tickingFile{f}, err
}
func (d tickingDisk) Mkdir(path string) error      { tick(); return d.Disk.Mkdir(path) }
func (d tickingDisk) Rename(from, to string) error { tick(); return d.Disk.Rename(from, to) }
func (d tickingDisk) RemoveAll(path string) error  { tick(); return d.Disk.RemoveAll(path) }
func (d tickingDisk) SyncDir(path string) error    { tick(); return d.Disk.SyncDir(path) }

type tickingFile struct{ atomicfile.File }

func (f tickingFile) Write(p []byte) (int, error) { tick(); return f.File.Write(p) }
func (f tickingFile) Sync() error                 { tick(); return f.File.Sync() }
func (f tickingFile) Close() error                { tick(); return f.File.Close() }

func child(t *testing.T, dir, name, count string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir, childName+"="+name, childCount+"="+count)
	cmd.Stderr = os.Stderr
	return cmd
}

// A process is killed at random moments of making a store, publishing and moving aliases. Each time every version that the index lists is whole, and every version whose publication had returned is listed.
func TestKillWhilePublishing(t *testing.T) {
	t.Parallel()
	var dir string
	r := rand.New(rand.NewPCG(3, 3))
	published, partial, unmade := 0, 0, 0
	for i := range kills {
		// The first ones hardly get beyond making a store; the last of them is used from then on.
		reach := int64(120)
		if i <= kills/5 {
			dir, published, reach = filepath.Join(t.TempDir(), "store"), 0, 20
		}
		cmd := child(t, dir, "killed", "")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		if _, err := io.CopyN(&said, bufio.NewReaderSize(out, 16), 1+r.Int64N(reach)); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&said, out); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Fatal(err)
		}
		_ = cmd.Wait() // reports the kill
		published += strings.Count(said.String(), "+")
		for _, name := range names(t, dir) {
			if atomicfile.IsTemp(filepath.Base(name)) {
				partial++
				break
			}
		}
		s, err := Open(dir, Options{MustExist: true})
		if errors.Is(err, ErrNoStore) {
			if published > 0 {
				t.Fatalf("the store is gone after %d publications", published)
			}
			unmade++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		list, err := s.Verify(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) < published {
			t.Fatalf("%d versions, %d were published", len(list), published)
		}
		// One that was listed when the kill came, but had not said so, counts from now on.
		published = len(list)
		if published > 0 {
			if v := resolve(t, s, "killed"); v.Manifest.EnvStep != int64(published-1) {
				t.Fatalf("latest is of step %d, %d were published", v.Manifest.EnvStep, published)
			}
			resolve(t, s, "killed:best")
		}
	}
	if published < kills/4 || partial < kills/8 {
		t.Errorf("%d versions, %d kills left temporary files: the kills did not hit anything", published, partial)
	}
	s := open(t, dir, Options{})
	publish(t, s, draft("after", 1))
	for _, name := range names(t, dir) {
		if atomicfile.IsTemp(filepath.Base(name)) {
			t.Errorf("%s is left", name)
		}
	}
	t.Logf("%d kills: %d versions, %d left temporary files, %d no store", kills, published, partial, unmade)
}

// Processes that publish into one store at the same time lose nothing of each other's.
func TestConcurrentProcesses(t *testing.T) {
	t.Parallel()
	const processes, each = 4, 6
	dir := filepath.Join(t.TempDir(), "store")
	var list []*exec.Cmd
	for i := range processes {
		cmd := child(t, dir, "p"+strconv.Itoa(i), strconv.Itoa(each))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		list = append(list, cmd)
	}
	for _, cmd := range list {
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	if n := verifyAll(t, dir); n != processes*each {
		t.Errorf("%d versions, want %d", n, processes*each)
	}
	s := open(t, dir, Options{MustExist: true})
	for i := range processes {
		resolve(t, s, "p"+strconv.Itoa(i)+":best")
	}
}

// Goroutines with one store and with stores of their own publish the same and different content and move one alias at the same time.
func TestConcurrentGoroutines(t *testing.T) {
	t.Parallel()
	const workers, each = 6, 5
	dir := t.TempDir()
	shared := open(t, dir, Options{Now: clock()})
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			s := shared
			if w%2 == 1 {
				if s, errs[w] = Open(dir, Options{}); errs[w] != nil {
					return
				}
			}
			for i := range each {
				for _, name := range []string{"same", "own-" + strconv.Itoa(w)} {
					v, err := s.Publish(t.Context(), draft(name, float32(i)))
					if err == nil {
						_, err = s.Alias(t.Context(), v.Digest, "moving")
					}
					if err == nil {
						_, err = s.List()
					}
					errs[w] = errors.Join(errs[w], err)
				}
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if n := verifyAll(t, dir); n != each+workers*each {
		t.Errorf("%d versions, want %d", n, each+workers*each)
	}
	if v := resolve(t, shared, "own-3:moving"); v.Digest != resolve(t, shared, "own-3").Digest {
		t.Errorf("moving is %s", v)
	}
}

func TestWaitingForTheLockEnds(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	release, err := atomicfile.Lock(filepath.Join(s.Dir(), lockFile))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := s.Publish(ctx, draft("a", 1))
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, s.Dir()); len(got) != 3 {
		t.Errorf("left %v", got)
	}
	publish(t, s, draft("a", 1))
}
