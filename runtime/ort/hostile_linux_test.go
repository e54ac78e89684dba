//go:build cgo

package ort_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/autodiff/opcases"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/internal/hostile"
	"github.com/onnxrl/onnxrl/runtime/internal/nodecases"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var update = flag.Bool("update", false, "try every hostile variant, those that are refused too, and write testdata/hostile.txt")

// bases are ONNX's own node cases where they are named, those of this repository and the gradient
// cases: each operator, with inputs that work. They are decoded when they are asked for.
type bases struct {
	cases    []nodecases.Case
	gradient []opcases.Case
	at       int
	variants []hostile.Variant // of base at
}

func openBases(t testing.TB) *bases {
	b := &bases{gradient: opcases.All(), at: -1}
	files := []string{filepath.Join("..", "internal", "nodecases", "testdata", "own.tar.gz")}
	if name := os.Getenv(nodecases.EnvCases); name != "" {
		files = append(files, name)
	}
	for _, f := range files {
		cases, err := nodecases.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		b.cases = append(b.cases, cases...)
	}
	return b
}

// len counts each base four times: as it is, of both wide integers, and with its constants as
// inputs; the last are the equations of Einsum.
func (b *bases) len() int { return 4*(len(b.cases)+len(b.gradient)) + 1 }

// of lists the variants of a base; none where its inputs are no tensors.
func (b *bases) of(t testing.TB, i int) []hostile.Variant {
	if i == b.at {
		return b.variants
	}
	n := len(b.cases) + len(b.gradient)
	if i == 4*n {
		b.at, b.variants = i, hostile.Equations()
		return b.variants
	}
	base, ok := b.base(t, i%n), true
	switch i / n {
	case 1, 2:
		base, ok = hostile.Integers(base, []tensor.DType{tensor.Int32, tensor.Int64}[i/n-1])
	case 3:
		base, ok = hostile.Open(base)
	}
	b.at, b.variants = i, nil
	if ok {
		b.variants = hostile.Variants(base)
	}
	return b.variants
}

func (b *bases) base(t testing.TB, i int) hostile.Base {
	if i >= len(b.cases) {
		c := b.gradient[i-len(b.cases)]
		p, err := c.Problem()
		if err != nil {
			t.Fatal(err)
		}
		out := hostile.Base{Name: c.String(), Model: p.Model}
		for _, v := range p.Model.Graph.Inputs() {
			out.Inputs = append(out.Inputs, p.Inputs[v.Name])
		}
		return out
	}
	c := b.cases[i]
	m, err := onnx.Unmarshal(c.Model)
	if err != nil {
		t.Fatal(err)
	}
	out := hostile.Base{Name: c.Name, Model: m}
	// Operators that the standard defines by others are tried through those.
	if strings.Contains(c.Name, "_expanded") || len(c.Sets) == 0 {
		out.Model = &onnx.Model{Graph: &onnx.Graph{}}
	} else if out.Inputs, err = caseInputs(m, c.Sets[0]); err != nil {
		out.Model, out.Inputs = &onnx.Model{Graph: &onnx.Graph{}}, nil
	}
	return out
}

// caseInputs decodes the inputs of a case; an error says that they are no tensors.
func caseInputs(m *onnx.Model, set nodecases.Set) ([]*tensor.Tensor, error) {
	list := m.Graph.Inputs()
	if len(list) != len(set.Inputs) {
		return nil, fmt.Errorf("%d inputs for %d", len(set.Inputs), len(list))
	}
	var out []*tensor.Tensor
	for i, b := range set.Inputs {
		if _, ok := list[i].TensorType(); !ok {
			return nil, fmt.Errorf("input %d is no tensor", i)
		}
		p, err := onnx.UnmarshalTensor(b)
		if err != nil {
			return nil, err
		}
		x, err := onnx.TensorOf(p)
		if err != nil {
			return nil, err
		}
		out = append(out, x)
	}
	return out, nil
}

// pick is a variant of a base.
type pick struct{ base, variant int }

// chosen lists the variants to try: with -update all, up to a few for each operator, place and
// value, and one more of each form of the operator; else a part that is the same every time, and
// what testdata/hostile.txt lists, in each form.
func chosen(t testing.TB, b *bases) []pick {
	listed := map[string]bool{}
	for _, l := range golden(t) {
		listed[l.key] = true
	}
	seen, forms := map[string]int{}, map[string]bool{}
	var out []pick
	for i := range b.len() {
		for j, v := range b.of(t, i) {
			k := v.Key()
			h := fnv.New32a()
			h.Write([]byte(k))
			most := 1
			if *update {
				most = 4
			}
			all := *update || listed[k]
			form := k + "\t" + v.Form
			if (all || h.Sum32()%48 == 0) && seen[k] < most || all && !forms[form] {
				seen[k]++
				forms[form] = true
				out = append(out, pick{i, j})
			}
		}
	}
	return out
}

type line struct{ key, end string }

// goldenPath lists what ONNX Runtime alone does not survive: operator, place, value and how the
// process ended.
const goldenPath = "testdata/hostile.txt"

func golden(t testing.TB) []line {
	b, err := os.ReadFile(goldenPath)
	if err != nil {
		if *update {
			return nil
		}
		t.Fatal(err)
	}
	var out []line
	for _, s := range strings.Split(strings.TrimSpace(string(b)), "\n") {
		if f := strings.Split(s, "\t"); len(f) == 4 {
			out = append(out, line{strings.Join(f[:3], "\t"), f[3]})
		}
	}
	return out
}

// The child answers with one line when it begins a variant and one when it has ended.
const childEnv = "ONNXRL_HOSTILE_CHILD"

// cpuLimit is how long the processor may work on one variant before it counts as one that never
// ends. It is processor time, so a busy machine does not matter.
const cpuLimit = 10 * time.Second

// TestHostileChild is the child's side of TestHostile; by itself it does nothing.
func TestHostileChild(t *testing.T) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		return
	}
	text, err := os.ReadFile(filepath.Join(dir, "picks"))
	if err != nil {
		t.Fatal(err)
	}
	// A request for absurd amounts of memory must be refused, not granted.
	if err := syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 8 << 30, Max: 8 << 30}); err != nil {
		t.Fatal(err)
	}
	debug.SetTraceback("none")
	report := os.NewFile(3, "report")
	dead := map[string]bool{}
	if b, err := os.ReadFile(filepath.Join(dir, "dead")); err == nil {
		for _, k := range strings.Split(string(b), "\n") {
			dead[k] = true
		}
	}
	e := open(t)
	defer e.Close()
	var began atomic.Int64
	used := func() int64 {
		var u syscall.Rusage
		if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
			return 0
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	// A run is asked to stop first: one that repeats nodes for ever does.
	var stop atomic.Pointer[context.CancelFunc]
	go func() {
		for range time.Tick(time.Second / 4) {
			b := began.Load()
			if b == 0 {
				continue
			}
			if u := used() - b; u > int64(cpuLimit) {
				os.Exit(97)
			} else if u > int64(cpuLimit)/3 {
				(*stop.Load())()
			}
		}
	}()
	all := openBases(t)
	for l := range strings.Lines(string(text)) {
		var i int
		var p pick
		if _, err := fmt.Sscan(l, &i, &p.base, &p.variant); err != nil {
			t.Fatal(err)
		}
		v := all.of(t, p.base)[p.variant]
		if dead[v.Key()] {
			continue
		}
		fmt.Fprintf(report, "begin %d\n", i)
		ctx, cancel := context.WithCancel(t.Context())
		stop.Store(&cancel)
		began.Store(used())
		fmt.Fprintf(report, "%s %d\n", try(ctx, e, v, func() { fmt.Fprintf(report, "unguarded %d\n", i) }), i)
		began.Store(0)
		cancel()
	}
	fmt.Fprintln(report, "end 0")
}

// try runs a variant, and says what came of it. unguarded is called before the checks are left out.
func try(ctx context.Context, e engine.Compiler, v hostile.Variant, unguarded func()) string {
	m, in, err := v.Make()
	if err != nil {
		return "broken"
	}
	if err := ort.Accept(m); err != nil {
		if !*update {
			return "refused"
		}
		unguarded()
		ort.Unguarded(true)
		defer ort.Unguarded(false)
		run(ctx, e, m, in)
		return "refused"
	}
	if large(m, in) {
		return "large"
	}
	err = run(ctx, e, m, in)
	if *update && (errors.As(err, new(*engine.ShapeError)) || errors.As(err, new(engine.DataError))) {
		unguarded()
		ort.Unguarded(true)
		defer ort.Unguarded(false)
		run(ctx, e, m, in)
		return "refused"
	}
	if err != nil {
		return "failed"
	}
	return "ran"
}

// most is how many bytes a value may have for its variant to run: beyond it, the outcome depends on
// how much memory the machine has, and how fast.
const most = 256 << 20

// large reports whether a model asks for a larger value than most, with these inputs.
func large(m *onnx.Model, in []*tensor.Tensor) bool {
	values := map[onnx.Value]*tensor.Tensor{}
	for i, v := range m.Graph.Inputs() {
		values[onnx.Value(v.Name)] = in[i]
	}
	known, err := onnx.InputsToInitializers(m, values)
	if err != nil {
		return false
	}
	for i, v := range known.Graph.Output {
		// The declaration of an output is that of the model before it became a variant.
		t, _ := v.TensorType()
		known.Graph.Output[i] = onnx.NewValueInfo(onnx.Value(v.Name), onnx.TensorType{DType: t.DType})
	}
	env, err := shape.Infer(known, nil)
	if err != nil {
		return false
	}
	for _, n := range known.Graph.Node {
		if n.OpType == "Range" {
			// ONNX Runtime takes the limit minus the start in their own type, which wraps: a range
			// of nothing becomes a long one.
			start, _ := env.Fact(onnx.Value(n.In(0)))
			limit, _ := env.Fact(onnx.Value(n.In(1)))
			if a, b := start.Const, limit.Const; a != nil && b != nil && a.Len() == 1 && b.Len() == 1 && a.DType() == tensor.Int32 {
				if d := int64(b.Int32s()[0]) - int64(a.Int32s()[0]); d != int64(int32(d)) {
					return true
				}
			}
		}
		for _, v := range n.Output {
			t := env.Type(onnx.Value(v))
			dims, ok := t.Static()
			bytes := max(t.DType.Size(), 1)
			for _, d := range dims {
				bytes *= min(d, most+1)
				bytes = min(bytes, most+1)
			}
			if ok && bytes > most {
				return true
			}
		}
	}
	return false
}

func run(ctx context.Context, e engine.Compiler, m *onnx.Model, in []*tensor.Tensor) error {
	s, err := e.Compile(m, engine.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Run(ctx, make([]*tensor.Tensor, len(s.Outputs())), in)
}

// TestHostile puts hostile numbers into attributes, inputs and shapes of every operator, in child
// processes. What our checks let pass must not end the process. With -update it also tries what they
// refuse, and records what ONNX Runtime alone does not survive.
func TestHostile(t *testing.T) {
	longtest.Slow(t)
	all := openBases(t)
	list := chosen(t, all)
	o := &outcomes{counts: map[string]int{}, ends: map[string]string{}, died: map[int]string{}, refused: map[int]bool{}}
	shards := 2
	if *update {
		shards = 6
	}
	var wg sync.WaitGroup
	for k := range shards {
		wg.Go(func() { o.shard(t, list, k*len(list)/shards, (k+1)*len(list)/shards) })
	}
	wg.Wait()
	passed := map[string]bool{}
	for i, how := range sorted.All(o.died) {
		v := all.of(t, list[i].base)[list[i].variant]
		if !o.refused[i] {
			passed[v.Key()] = true
			t.Errorf("%s (%s): %s: it gets past the checks", v.Key(), v.Base, how)
		}
	}
	fmt.Printf("hostile: %d variants: %v\n", len(list), o.counts)
	if n := o.counts["refused"] + o.counts["failed"] + o.counts["ran"] + o.counts["large"] + o.counts["died"]; n < 2000 {
		t.Errorf("%d variants were tried, expected at least 2000", n)
	}
	if o.counts["broken"] > 0 {
		t.Errorf("%d variants could not be made", o.counts["broken"])
	}
	if *update {
		maps.DeleteFunc(o.ends, func(k, _ string) bool { return passed[k] })
		writeGolden(t, o.ends)
	}
}

// outcomes gathers what came of the variants.
type outcomes struct {
	mu     sync.Mutex
	counts map[string]int
	ends   map[string]string // by key
	died   map[int]string    // by index
	// refused are those that the checks refused, and that were tried without them.
	refused map[int]bool
}

// shard tries a part of the list, with a new child after each that dies.
func (o *outcomes) shard(t *testing.T, list []pick, next, end int) {
	dir := t.TempDir()
	all := openBases(t)
	for next < end {
		var picks strings.Builder
		for i := next; i < end; i++ {
			fmt.Fprintln(&picks, i, list[i].base, list[i].variant)
		}
		o.mu.Lock()
		dead := strings.Join(slices.Collect(maps.Keys(o.ends)), "\n")
		o.mu.Unlock()
		for name, text := range sorted.All(map[string]string{"picks": picks.String(), "dead": dead}) {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Error(err)
				return
			}
		}
		begun, how := o.child(t, dir)
		if how == "" {
			return
		}
		if begun < 0 {
			t.Errorf("a child ended by itself: %s", how)
			return
		}
		next = begun + 1
		if strings.Contains(how, "out of memory") {
			// The limit of the child, not a fault: an output as large as it was asked for, which
			// large could not foresee.
			o.mu.Lock()
			o.counts["large"]++
			o.mu.Unlock()
			continue
		}
		key := all.of(t, list[begun].base)[list[begun].variant].Key()
		o.mu.Lock()
		o.died[begun] = how
		o.counts["died"]++
		if o.ends[key] == "" {
			o.ends[key] = how
		}
		o.mu.Unlock()
		if *update {
			fmt.Fprintf(os.Stderr, "%d of %d: %s: %s\n", begun, end, key, how)
		}
	}
}

func writeGolden(t *testing.T, ends map[string]string) {
	var b strings.Builder
	b.WriteString("# What ONNX Runtime alone does not survive: operator, place, value, how the process ended. Written by: go test ./runtime/ort -run TestHostile$ -update\n")
	for _, k := range slices.SortedFunc(maps.Keys(ends), cmp.Compare[string]) {
		if strings.Contains(ends[k], "out of memory") {
			continue // the child's limit, and Go's words
		}
		fmt.Fprintf(&b, "%s\t%s\n", k, ends[k])
	}
	if err := os.WriteFile(goldenPath, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// child runs a process that tries the variants listed in a folder. It returns the one in which the
// process died, and how; nothing when it came to the end.
func (o *outcomes) child(t *testing.T, dir string) (begun int, how string) {
	r, w, err := os.Pipe()
	if err != nil {
		return -1, err.Error()
	}
	defer r.Close()
	args := []string{"-test.run=^TestHostileChild$", "-test.timeout=0"}
	if *update {
		args = append(args, "-update")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	cmd.ExtraFiles = []*os.File{w}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return -1, err.Error()
	}
	w.Close()
	begun = -1
	ended := false
	for s := bufio.NewScanner(r); s.Scan(); {
		what, number, _ := strings.Cut(s.Text(), " ")
		switch what {
		case "begin":
			begun, _ = strconv.Atoi(number)
		case "unguarded":
			n, _ := strconv.Atoi(number)
			o.mu.Lock()
			o.refused[n] = true
			o.mu.Unlock()
		case "end":
			ended = true
		default:
			o.mu.Lock()
			o.counts[what]++
			o.mu.Unlock()
		}
	}
	err = cmd.Wait()
	if ended && err == nil {
		return 0, ""
	}
	return begun, ending(cmd.ProcessState, stderr.String())
}

// ending says how a process ended: the signal, as Go's runtime reports it where it could, or the
// exit status.
func ending(p *os.ProcessState, stderr string) string {
	for _, name := range []string{"SIGFPE", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL"} {
		if strings.Contains(stderr, name) {
			return name
		}
	}
	if p.ExitCode() == 97 {
		return "never ends"
	}
	if s, ok := p.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		return s.Signal().String()
	}
	for l := range strings.Lines(stderr) {
		if strings.Contains(l, "fatal error") || strings.Contains(l, "panic") {
			return strings.TrimSpace(l)
		}
	}
	return p.String()
}
