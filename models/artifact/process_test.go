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

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// The task of a child process: a store's directory, and how many versions of which name it
// publishes. Without a number it publishes, moves and removes aliases, pulls from a registry and
// collects garbage until it is killed, beginning with the operation of that number.
const (
	childDir   = "ARTIFACT_TEST_DIR"
	childName  = "ARTIFACT_TEST_NAME"
	childCount = "ARTIFACT_TEST_COUNT"
	childHub   = "ARTIFACT_TEST_HUB"
	childStart = "ARTIFACT_TEST_START"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		work := publishInChild
		if os.Getenv(childCount) == "" {
			work = churnInChild
		}
		if err := work(dir, os.Getenv(childName), os.Getenv(childCount)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// publishInChild publishes a number of versions.
func publishInChild(dir, name, count string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	s, err := Open(dir, Options{Now: clock()})
	if err != nil {
		return err
	}
	for i := range n {
		d := Draft{Manifest: Manifest{Name: name, Kind: "model", EnvStep: int64(i)}, ModelBytes: modelBytes(400, float32(i)), Golden: golden(400, float32(i))}
		if i%2 == 0 {
			d.Aliases = []string{"best"}
		}
		if _, err := s.Publish(context.Background(), d); err != nil {
			return err
		}
	}
	return nil
}

// Operations of churnInChild. Each letter is written to standard output when the operation begins,
// and as a capital when it has returned.
const operations = "pargalr" // publish, move aliases, remove aliases, collect garbage, pull

// hubVersions is the number of versions that can be pulled, by the tags v0, v1 …; each has another
// one as its parent.
const hubVersions = 6

// chain is the number of versions after which lineage begins again, so that there is garbage.
const chain = 3

func churnInChild(dir, name, _ string) error {
	// A killed process leaves what it has written to the kernel, synced or not.
	s, err := Open(dir, Options{Disk: tickingDisk{volatile{atomicfile.OS}}, Now: clock()})
	if err != nil {
		return err
	}
	ctx := context.Background()
	step, tip := int64(0), Version{}
	if v, err := s.Resolve(name); err == nil {
		step, tip = v.Manifest.EnvStep+1, v
	} else if !errors.Is(err, ErrNotFound) {
		return err
	}
	start, err := strconv.Atoi(os.Getenv(childStart))
	if err != nil {
		return err
	}
	for i := start; ; i++ {
		op := operations[i%len(operations)]
		if tip.Digest == "" {
			op = 'p'
		}
		os.Stdout.Write([]byte{op})
		switch op {
		case 'p':
			d := Draft{Manifest: Manifest{Name: name, Kind: "model", EnvStep: step}, ModelBytes: modelBytes(100, float32(step)), Golden: golden(100, float32(step))}
			if step%chain != 0 {
				d.Manifest.Parents = []string{tip.Digest}
			}
			if tip, err = s.Publish(ctx, d); err != nil {
				return err
			}
			step++
		case 'a':
			for _, alias := range []string{"prod", "canary"} {
				if _, err := s.Alias(ctx, name, alias); err != nil {
					return err
				}
			}
		case 'g':
			if _, err := s.Collect(ctx, CollectOptions{KeepLast: 1}); err != nil {
				return err
			}
		case 'l':
			repo, err := remoteRepository(os.Getenv(childHub), "hub")
			if err != nil {
				return err
			}
			tag := "v" + strconv.Itoa(i/len(operations)%hubVersions)
			// Aliases that are pulled are removed again, or there would soon be nothing to fetch.
			if _, _, err := s.Pull(ctx, repo, tag, PullOptions{Aliases: []string{"pulled"}, Lineage: true, Progress: func(Progress) { tick() }}); err != nil {
				return err
			}
		case 'r':
			for _, t := range [][2]string{{"hub", "pulled"}, {name, "canary"}} {
				if err := s.RemoveAlias(ctx, t[0], t[1]); err != nil && !errors.Is(err, ErrNotFound) {
					return err
				}
			}
		}
		os.Stdout.Write([]byte{op - 'a' + 'A'})
	}
}

// tickingDisk reports every operation on standard output, so that the parent can kill in the middle
// of any of them without looking at a clock.
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

// chains is how many stores are worked on side by side: a kill is mostly waiting, for a process to
// start and for what it wrote.
const chains = 4

// tally counts what kills have hit.
type tally struct {
	steps                           int64 // versions that were published
	partial, unmade, garbage, kills int
	hit                             map[byte]int
}

// A process is killed at random moments of making a store, publishing, moving and removing aliases,
// pulling and collecting garbage. Each time every version that the index lists is whole, what had
// returned has been done, and what aliases stand for has all its ancestors.
func TestKillAnywhere(t *testing.T) {
	longtest.Slow(t)
	testKillAnywhere(t, 40)
}

// TestManyKillsAnywhere is TestKillAnywhere with more kills.
func TestManyKillsAnywhere(t *testing.T) {
	longtest.Nightly(t)
	testKillAnywhere(t, 400)
}

// testKillAnywhere kills so many processes, the first fifth of each chain while they make a store.
func testKillAnywhere(t *testing.T, kills int) {
	t.Parallel()
	h := newHub(t)
	source := open(t, t.TempDir(), Options{Disk: volatile{atomicfile.OS}, Now: clock()})
	for i := range hubVersions {
		parent := publish(t, source, draft("hub", float32(i)))
		publish(t, source, from("hub", float32(10+i), parent))
		if _, n, err := source.Push(t.Context(), "hub", h.repository(t, "hub"), PushOptions{Tags: []string{"v" + strconv.Itoa(i)}, Lineage: true}); err != nil || n != 2 {
			t.Fatal(n, err)
		}
	}
	var all [chains]tally
	t.Run("chain", func(t *testing.T) {
		for c := range chains {
			t.Run(strconv.Itoa(c), func(t *testing.T) {
				t.Parallel()
				all[c] = killChain(t, h, c, kills/chains)
			})
		}
	})
	sum := tally{hit: map[byte]int{}}
	for _, c := range all {
		sum.steps, sum.partial, sum.unmade, sum.garbage, sum.kills = sum.steps+c.steps, sum.partial+c.partial, sum.unmade+c.unmade, sum.garbage+c.garbage, sum.kills+c.kills
		for op, n := range sorted.All(c.hit) {
			sum.hit[op] += n
		}
	}
	if sum.kills != kills {
		t.Errorf("%d kills", sum.kills)
	}
	for _, op := range []byte(operations) {
		if sum.hit[op] < kills/100 {
			t.Errorf("%d kills during operation %c: they did not hit it", sum.hit[op], op)
		}
	}
	if sum.steps < int64(kills/8) || sum.partial < kills/20 {
		t.Errorf("%d versions, %d kills left temporary files: the kills did not hit anything", sum.steps, sum.partial)
	}
	t.Logf("%d kills: %d versions published; %d left temporary files, %d blobs without a version, %d no store; by operation %v", sum.kills, sum.steps, sum.partial, sum.garbage, sum.unmade, sum.hit)
}

// killChain kills so many processes of one chain, each of which goes on with the store of the one
// before.
func killChain(t *testing.T, h *hub, chain, kills int) tally {
	var dir string
	r := rand.New(rand.NewPCG(3, 3+uint64(chain)))
	sum := tally{hit: map[byte]int{}}
	steps, aliased := int64(0), false
	for i := range kills {
		// The first ones hardly get beyond making a store; the last of them is used from then on.
		reach := int64(120)
		if i <= kills/5 {
			dir, steps, aliased, reach = filepath.Join(t.TempDir(), "store"), 0, false, 20
		}
		until := byte(0)
		if i > kills/5 && i%8 == 0 {
			until, reach = 'g', 8 // The shortest operation, which few bytes chosen at random lie in.
		}
		said, last := killed(t, dir, h.URL, chain+i, until, 1+r.Int64N(reach))
		sum.kills++
		sum.hit[last]++
		steps += int64(strings.Count(said, "P"))
		aliased = aliased || strings.Contains(said, "A")
		for _, name := range names(t, dir) {
			if atomicfile.IsTemp(filepath.Base(name)) {
				sum.partial++
				break
			}
		}
		s, err := Open(dir, Options{MustExist: true})
		if errors.Is(err, ErrNoStore) {
			if steps > 0 {
				t.Fatalf("the store is gone after %d publications", steps)
			}
			sum.unmade++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Verify(t.Context(), nil); err != nil {
			t.Fatalf("kill %d, in %c after %q: %v", i, last, said, err)
		}
		// A publication may have been listed when the kill came, and not have said so.
		v, err := s.Resolve("killed")
		if err == nil {
			if at := v.Manifest.EnvStep + 1; at != steps && at != steps+1 {
				t.Fatalf("kill %d: %d versions were published, latest is the one of step %d", i, steps, v.Manifest.EnvStep)
			}
			steps = v.Manifest.EnvStep + 1
			hasAncestors(t, s, "killed")
		} else if steps > 0 || !errors.Is(err, ErrNotFound) {
			t.Fatal(err)
		}
		if aliased {
			hasAncestors(t, s, "killed:prod")
		}
		// It may have been killed while it pulled or removed it; where the alias is, everything is.
		if _, err := s.Resolve("hub:pulled"); err == nil {
			hasAncestors(t, s, "hub:pulled")
		} else if strings.LastIndexByte(said, 'L') > strings.LastIndexAny(said, "rR") {
			t.Fatalf("kill %d: after %q the alias is gone: %v", i, said, err)
		}
		if n, _ := storeBytes(t, s); n > wholeBlobs(t, s) {
			sum.garbage++
		}
	}
	sum.steps = steps
	s := open(t, dir, Options{})
	publish(t, s, draft("after", 1))
	collect(t, s, CollectOptions{})
	for _, name := range names(t, dir) {
		if atomicfile.IsTemp(filepath.Base(name)) {
			t.Errorf("%s is left", name)
		}
	}
	if n, _ := storeBytes(t, s); n != wholeBlobs(t, s) {
		t.Errorf("%d blobs, %d of versions", n, wholeBlobs(t, s))
	}
	return sum
}

// killed starts a process, lets it say so many bytes, after it has begun an operation unless until
// is 0, and kills it. It returns what it had said and the operation that it was in, 0 before the
// first.
func killed(t *testing.T, dir, hub string, start int, until byte, after int64) (said string, last byte) {
	t.Helper()
	cmd := child(t, dir, "killed", "")
	cmd.Env = append(cmd.Env, childHub+"="+hub, childStart+"="+strconv.Itoa(start))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	from := bufio.NewReaderSize(out, 16)
	for until != 0 {
		b, err := from.ReadByte()
		if err != nil {
			t.Fatalf("after %q: %v", &text, err)
		}
		text.WriteByte(b)
		if b == until {
			break
		}
	}
	if _, err := io.CopyN(&text, from, after); err != nil {
		t.Fatalf("after %q: %v", &text, err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(&text, from); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Fatal(err)
	}
	_ = cmd.Wait() // reports the kill
	said = strings.ReplaceAll(text.String(), ".", "")
	if said != "" {
		last = said[len(said)-1] | 0x20
	}
	return said, last
}

// hasAncestors checks that all ancestors of a version are there.
func hasAncestors(t *testing.T, s *Store, ref string) {
	t.Helper()
	line, err := s.Lineage(ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range line {
		if a.Version == nil {
			t.Fatalf("%s: its ancestor %s is missing", ref, a.Digest)
		}
	}
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

// Goroutines with one store and with stores of their own publish the same and different content and
// move one alias at the same time.
func TestConcurrentGoroutines(t *testing.T) {
	t.Parallel()
	const workers, each = 6, 5
	dir := t.TempDir()
	shared := open(t, dir, Options{Disk: volatile{atomicfile.OS}, Now: clock()})
	var wg sync.WaitGroup
	errs := make([]error, workers)
	for w := range workers {
		wg.Go(func() {
			s := shared
			if w%2 == 1 {
				if s, errs[w] = Open(dir, Options{Disk: volatile{atomicfile.OS}}); errs[w] != nil {
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
