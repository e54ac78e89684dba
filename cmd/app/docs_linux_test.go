package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const shippedExperiments = "../../configs/experiments"

// pageShims are the programs that the commands of pages start. They run what is written, with what
// its page adds (docPage.shorter), and a server on a port that the system gives it.
var pageShims = map[string]string{
	"onnxrl": `case "$*" in
SHORTER
esac
case "$1" in
serve) exec "$PROGRAM" "$@" --http 127.0.0.1:0 --grpc "" --json >"$SERVED" ;;
esac
exec "$PROGRAM" "$@"`,
	"go": `case "$*" in
"run ./cmd/onnxrl "*) shift 2; exec onnxrl "$@" ;;
"install ./cmd/onnxrl") exec test -f "$ROOT/cmd/onnxrl/main.go" ;;
"test "*) exit 0 ;; # goTest has looked it up: it is what runs here
esac
echo "go $*: not a command that this test knows" >&2
exit 1`,
	"curl": `tries=0
until at=$(sed -n 's/.*"http":"\([^"]*\)".*/\1/p' "$SERVED") && [ -n "$at" ]; do
	tries=$((tries + 1))
	if [ "$tries" -gt 1200 ]; then
		echo "no server has said its address" >&2
		exit 1
	fi
	sleep 0.05
done
n=$#
while [ "$n" -gt 0 ]; do
	a=$(printf %s "$1" | sed "s/^localhost:8000/$at/")
	shift
	set -- "$@" "$a"
	n=$((n - 1))
done
exec "$CURL" "$@"`,
	"python3": `exec "$PYTHON" "$@"`,
}

// exportPython names a Python with numpy and onnxruntime.
const exportPython = "ONNXRL_EXPORT_PYTHON"

// shortening is how commands that take long are made short: none becomes another one, they are only
// given more.
type shortening struct {
	// begins is how the arguments of onnxrl begin, and adds what is put behind them, as a shell
	// reads it.
	begins, adds string
}

// shortened are the commands of all pages that take long, behind those of the page itself.
var shortened = []shortening{
	{"demo", "--env-steps 200"},
	{"train --resume", "--set train.total_env_steps=800"},
	{"train", "--set train.total_env_steps=400 --set train.validation.every_steps=200 --set 'publish={observations: 64, allow_ties: true}'"},
}

// docPage is a page of README.md and docs.
type docPage struct {
	path string
	// test executes all of its commands. A page without any has none.
	test     string
	commands int
	// says is what they print, beside the output that the page quotes.
	says []string
	// shorter says how those of TestPages are made shorter; of several entries that fit the first
	// counts, and the page's own come before those of all pages.
	shorter []shortening
	// files, unless nil, writes what the reader has into the folder in which they run.
	files func(t *testing.T, dir string)
	// python says that blocks of Python run, too, with numpy and onnxruntime.
	python bool
}

// pages are all pages. Those of TestPages and TestPagesAtNight are run in a folder with the shipped configurations, an
// exported network and a table.
var pages = []docPage{
	{path: "README.md", test: "TestPages", commands: 9, python: true, says: []string{"runs/demo-1/best.onnx", "equal-weight buy-and-hold", "cartpole_policy/agent.py", `"outputs"`}},
	{path: "CONTRIBUTING.md"},
	{path: "CHANGELOG.md"},
	{path: "docs/README.md"},
	{path: "docs/actors.md", test: "TestActorsPage", commands: 3},
	{path: "docs/architecture.md"},
	{path: "docs/artefacts.md", test: "TestPages", commands: 11, says: []string{"best latest", "input          observation", "prod", "made from", "/storage#best", "copies/cartpole is sha256:"}},
	{path: "docs/commands.md"},
	{path: "docs/dashboard.md", test: "TestTutorialDashboard", commands: 10}, // one of which is a test
	{path: "docs/data.md"},
	{path: "docs/determinism.md", test: "TestPages", commands: 4},
	{path: "docs/embed.md"},
	{path: "docs/environments.md", test: "TestPages", commands: 2, says: []string{"published runs/corridor"}},
	{path: "docs/glossary.md"},
	{path: "docs/evidence/measured.md"},
	{path: "docs/evidence/scml.md"},
	{path: "docs/evidence/verification.md"},
	{path: "docs/flags.md"},
	{path: "docs/gradients.md", test: "TestPages", commands: 5, says: []string{"forward nodes and", "written hessian_vector.onnx"}},
	{path: "docs/install.md", test: "TestRelease", commands: 19},
	{path: "docs/limits.md"},
	{path: "docs/live.md", test: "TestTutorialLive", commands: 6},
	{path: "docs/models.md", test: "TestPagesAtNight", commands: 8, files: tiedFiles, says: []string{"trained.onnx", "tuned.onnx", "converged.onnx", `tied="[t=transpose(e.weight)]"`, "apart.onnx"}},
	{path: "docs/observability.md", test: "TestDocumentedCommands", commands: 8},
	{
		path: "docs/offline.md", test: "TestPagesAtNight", commands: 17,
		says: []string{"published runs/pendulum_sac-1", "transitions of pendulum", "published runs/offline", "fqe", "60 decisions are in decisions", "60 episodes, 60 transitions of cartpole", "published runs/candidate", "wpdis", "95 % interval"},
		shorter: []shortening{
			{"train pendulum_sac", "--set train.total_env_steps=400 --set train.validation.every_steps=200 --set agent.learning_starts=200 --set agent.batch_size=16 --set 'agent.hidden=[16]' --set eval.episodes=2 --set publish.observations=64"},
			{"record", "--transitions 2000"},
			{"train offline.yaml", "--set train.total_env_steps=60 --set agent.batch_size=16 --set eval.episodes=2"},
			{"train candidate.yaml", "--set train.total_env_steps=60 --set agent.batch_size=16 --set eval.episodes=2"},
			{"evaluate", "--fqe-updates 60 --fqe-hidden 8 --bootstrap 100"},
			{"fit", "--epochs 2"},
		},
	},
	{
		path: "docs/population.md", test: "TestPagesAtNight", commands: 5,
		says: []string{"router, turn 2 of 2", "mean action pairwise distance of the published experts", "best sharpe  MAPD", "after 6 trials", "M1 one agent"},
		shorter: []shortening{
			{"train population population_demo", shortPopulation},
			{"train population ashare_population", shortPopulation},
		},
		files: marketFiles,
	},
	{path: "docs/qtmrl.md"},
	{path: "docs/replay.md", test: "TestTrainReplayOfServer", commands: 3},
	{path: "docs/scale.md", test: "TestScalePage", commands: 8},
	{path: "docs/scml.md", test: "TestTutorialSCML", commands: 28},
	{
		path: "docs/self_play.md", test: "TestPagesAtNight", commands: 6,
		says: []string{"matchmaking uniform", "exploitability: ", "generation-3 has ", "matchmaking prioritised", "published runs/depth4", "best.onnx has "},
		shorter: []shortening{
			{"league rps_league", "--set generations=4 --set games=2 --set interval_steps=1024"},
			{"league connect_four_league", "--set generations=2 --set games=1 --set interval_steps=128 --set experiment.train.num_envs=8 --set experiment.agent.n_steps=16 --set experiment.agent.batch_size=64 --set experiment.eval.episodes=2"},
			// A shortened search has no generation 73, and has learnt nothing.
			{"train connect_four", "--init runs/connect_four/learner/generation-0001/member-000 --set train.total_env_steps=128 --set train.num_envs=8 --set agent.n_steps=16 --set agent.batch_size=64 --set train.validation.every_steps=128 --set eval.episodes=2 --set publish.observations=64"},
			{"league play runs/connect_four", "--games 4 --at-least 0"},
		},
	},
	{path: "docs/serving.md", test: "TestPages", commands: 6, says: []string{`{"ready":true}`, `"platform"`, `"outputs"`, "choices differ", "95 % interval"}},
	{path: "docs/skill.md", test: "TestPages", commands: 2, says: []string{"PPO"}},
	{path: "docs/style.md"},
	{path: "docs/train.md", test: "TestPages", commands: 2, says: []string{"PPO     100", "policy lag (max)"}},
	{path: "docs/variables.md"},
	{
		path: "docs/walkforward.md", test: "TestPagesAtNight", commands: 4,
		says: []string{"one fold, 6 variants, 2 seeds: 12 runs", "as published", "one fold, 5 variants, 2 seeds: 10 runs", "SAC on target weights", "deflated Sharpe probability", "tables and plots in runs/ashare_walkforward"},
		shorter: []shortening{
			{"walkforward qtmrl_walkforward", shortWalk + ` --set 'variants["as published"]["train.total_env_steps"]=100' --set 'variants["as published"]["train.validation"].every_steps=50' --set 'variants["as published"].agent.encoder.d_model=16'`},
			{"walkforward ashare_walkforward", shortWalk},
		},
		files: marketFiles,
	},
}

// Small forms of the populations and of the walk-forwards that pages run.
const (
	shortPopulation = `--set experts.population=2 --set experts.generations=2 --set router.every=1 --set experts.interval_steps=40 --set router.interval_steps=16 --set agent.learning_starts=20 --set agent.batch_size=8 --set publish.observations=64 --set router.experiment.agent.n_steps=8 --set router.experiment.agent.batch_size=16 --set router.experiment.publish.observations=64 --set router.experiment.eval.episodes=1 --set pretrain.stride=100 --set pretrain.fit.epochs=1 --set pretrain.fit.network.encoder.d_model=4 --set pretrain.fit.network.encoder.d_ff=4 --set pretrain.fit.network.encoder.n_layers=1 --set pretrain.fit.network.encoder.n_kernels=2 --set eval.bootstrap.samples=20`
	shortWalk       = `--seeds 42,43 --set train.total_env_steps=100 --set train.num_envs=2 --set train.validation.every_steps=50 --set 'env.episode={kind: random, length: 20}' --set 'publish={observations: 64, allow_ties: true}' --set eval.bootstrap.samples=20 --set variants.PPO.agent.n_steps=20 --set variants.PPO.agent.batch_size=20 --set 'variants.PPO["train.total_env_steps"]=80' --set 'variants.PPO["train.validation"].every_steps=40' --set 'variants["SAC on target weights"]["train.total_env_steps"]=60' --set 'variants["SAC on target weights"]["train.validation"].every_steps=30' --set 'variants["SAC on target weights"].agent.learning_starts=20' --set 'variants["SAC on target weights"].agent.buffer_size=200' --set 'variants["SAC on target weights"].agent.batch_size=8'`
)

// begins is how a line of a page begins that is a command.
var begins = regexp.MustCompile(`^([A-Z_]+=\S+ )*(go|onnxrl|onnxrl-bench|curl|cmp|promtool|prometheus|python3?|sh|cat|mkdir|sha256sum|tar|docker|kubectl|git|gh|cosign|for|kill|\.\S*/\S+) `)

// commandsOf returns the commands of a block of a page: its lines, with the texts that they read. A
// block that begins with anything else is output, or a file.
func commandsOf(b fence) (out []string) {
	if b.language != "" && b.language != "sh" || !begins.MatchString(b.text) {
		return nil
	}
	text := ""
	for line := range strings.Lines(b.text) {
		if text += line; strings.Contains(text, "<<'END'") && line != "END\n" {
			continue
		}
		out, text = append(out, text), ""
	}
	return out
}

// blocks are those of code in Markdown.
var blocks = regexp.MustCompile("(?ms)^```.*?^```")

// TestEveryPage: no page and no command is left out of the tests, links lead somewhere, code in Go is
// that of an Example, and tutorials say what one needs, how long they take, what one sees and what is next.
func TestEveryPage(t *testing.T) {
	const root = "../.."
	var found []string
	for _, pattern := range []string{"docs/*.md", "docs/evidence/*.md", "*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, more...)
	}
	tests, examples := testsBelow(t, filepath.Join(root, "cmd")), exampleCode(t, root)
	index, err := os.ReadFile(filepath.Join(root, "docs/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, tutorials, _ := strings.Cut(string(index), "\n## Tutorials\n")
	tutorials, _, _ = strings.Cut(tutorials, "\n## ")
	commands, links, code := 0, 0, 0
	for _, path := range found {
		name := filepath.ToSlash(strings.TrimPrefix(path, root+"/"))
		i := slices.IndexFunc(pages, func(p docPage) bool { return p.path == name })
		if i < 0 {
			t.Errorf("%s: no test executes its commands: add it to the table", name)
			continue
		}
		p := pages[i]
		if p.commands > 0 && !slices.Contains(tests, p.test) {
			t.Errorf("%s: there is no test %q, which would execute its commands", name, p.test)
		}
		n := 0
		for _, b := range fences(t, path) {
			lines := commandsOf(b)
			n += len(lines)
			if !slices.Contains([]string{"", "sh", "go", "python", "yaml", "json"}, b.language) {
				t.Errorf("line %d of %s: a block of %s, which nothing looks at", b.line, name, b.language)
			}
			if len(lines) == 0 && (b.language == "sh" || b.language == "" && !strings.HasPrefix(p.test, "TestPages")) {
				t.Errorf("line %d of %s: the block does not begin with a command, and is not compared as output", b.line, name)
			}
			if b.language == "go" {
				if code++; !strings.Contains(examples, unindented(b.text)) {
					t.Errorf("line %d of %s: the code is that of no Example", b.line, name)
				}
			}
		}
		if n != p.commands {
			t.Errorf("%s has %d commands, expected %d", name, n, p.commands)
		}
		commands += n
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)|src="([^":]+)"`).FindAllStringSubmatch(blocks.ReplaceAllString(string(text), ""), -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), m[1]+m[3])); err != nil {
				t.Errorf("%s: %s: %v", name, m[0], err)
			}
		}
		if !strings.Contains(tutorials, "]("+strings.TrimPrefix(name, "docs/")+")") {
			continue
		}
		for _, part := range []string{"**You need**", "**Time:**", "**You see**", "\n**Next:**"} {
			if !strings.Contains(string(text), part) {
				t.Errorf("%s is a tutorial, and has no %q", name, part)
			}
		}
	}
	if len(found) != len(pages) {
		t.Errorf("%d pages, and %d in the table", len(found), len(pages))
	}
	if commands < 100 || links < 60 || code != 7 {
		t.Errorf("%d commands, %d links, %d pieces of code", commands, links, code)
	}
}

// testsBelow lists the tests and benchmarks of a folder and those below.
func testsBelow(t *testing.T, folder string) (out []string) {
	t.Helper()
	for _, text := range testFiles(t, folder, "_test.go") {
		for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Benchmark|Fuzz|Example)\w*)\(`).FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
	}
	return out
}

// exampleCode is the code of all Examples without indentation, as programs of their own have it.
func exampleCode(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	for _, text := range testFiles(t, root, "_test.go") {
		if strings.Contains(text, "\nfunc Example") {
			b.WriteString(exampleClause.ReplaceAllString(unindented(text), "$1 main$3"))
		}
	}
	// A whole program, whose own test runs it.
	for _, text := range testFiles(t, filepath.Join(root, "cmd", "internal", "cartpole"), "main.go") {
		b.WriteString(unindented(text))
	}
	return b.String()
}

// exampleClause finds the package clause of a file of Examples, and their functions.
var exampleClause = regexp.MustCompile(`(?m)^(package|func) (\w+_test|Example\w*)(\(\) \{)?$`)

// testFiles returns the texts of the files below a folder whose names end so.
func testFiles(t *testing.T, folder, end string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, end) {
			return err
		}
		text, err := os.ReadFile(path)
		out = append(out, string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var indentation = regexp.MustCompile(`(?m)^[ \t]+`)

func unindented(text string) string { return indentation.ReplaceAllString(text, "") }

// TestPages runs the commands of pages as they are written, in order, where nothing but the shipped
// configurations and the files of the reader are, and compares what the pages quote with what is
// printed.
func TestPages(t *testing.T) {
	longtest.Slow(t)
	runPages(t, 8)
}

// TestPagesAtNight does so with pages that train for long.
func TestPagesAtNight(t *testing.T) {
	longtest.Nightly(t)
	runPages(t, 5)
}

// runPages runs the pages that are the test's, of which there are so many.
func runPages(t *testing.T, count int) {
	t.Helper()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Fatal("the requests of pages are made by curl: ", err)
	}
	ran := 0
	for _, p := range pages {
		if p.test != t.Name() {
			continue
		}
		ran++
		t.Run(p.path, func(t *testing.T) { runPage(t, p, curl) })
	}
	if ran != count {
		t.Errorf("%d pages ran, expected %d", ran, count)
	}
}

// runPage runs the commands of a page in one shell, as a reader does, which ends with the first
// that fails.
func runPage(t *testing.T, p docPage, curl string) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, bin := t.TempDir(), t.TempDir()
	if err := os.Symlink(filepath.Join(root, "configs"), filepath.Join(dir, "configs")); err != nil {
		t.Fatal(err)
	}
	var shorter strings.Builder
	for _, s := range slices.Concat(p.shorter, shortened) {
		fmt.Fprintf(&shorter, "%q | %q*) set -- \"$@\" %s ;;\n", s.begins, s.begins+" ", s.adds)
	}
	for name, text := range sorted.All(pageShims) {
		text = strings.Replace(text, "SHORTER\n", shorter.String(), 1)
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// A network and a table of the reader's, with three classes.
	rows := apptest.Table(64)
	for i := range rows {
		rows[i][3] = float32(i % 3)
	}
	for name, from := range sorted.All(map[string]string{"net.onnx": apptest.MLPOf(t, 3), "table.parquet": apptest.ParquetFile(t, rows)}) {
		if err := os.Rename(from, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if p.files != nil {
		p.files(t, dir)
	}
	blocks := fences(t, filepath.Join(root, p.path))
	python := os.Getenv(exportPython)
	if p.python && python == "" {
		fmt.Printf("%s: the Python is not run (set %s)\n", p.path, exportPython)
	}
	commandsOf := func(b fence) []string {
		if p.python && python != "" && b.language == "python" {
			return []string{"python3 - <<'END'\n" + b.text + "END\n"}
		}
		return commandsOf(b)
	}
	// Each command is followed by a line with its number and exit status.
	const mark = "== ended:"
	var script strings.Builder
	var commands []string
	for _, b := range blocks {
		for _, line := range commandsOf(b) {
			if args, ok := strings.CutPrefix(line, "go test "); ok {
				goTest(t, p.path, strings.TrimSpace(args))
			}
			fmt.Fprintf(&script, "%s\nrc=$?; printf '\\n%s %d %%d\\n' $rc; [ $rc = 0 ] || exit 1\n", line, mark, len(commands))
			commands = append(commands, line)
		}
	}
	out, err := os.Create(filepath.Join(bin, "printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	// All that is left of the page's programs holds the other end of this pipe.
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	served := filepath.Join(bin, "served")
	self := apptest.Program(t)
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script.String())
	cmd.Dir, cmd.Env = dir, append(self.Env, "PATH="+bin+":"+os.Getenv("PATH"), "PROGRAM="+self.Path, "ROOT="+root, "CURL="+curl, "PYTHON="+python, "SERVED="+served, "no_proxy=*")
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{held}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = errors.Join(os.WriteFile(served, nil, 0o666), cmd.Start(), held.Close())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
		if _, err := io.Copy(io.Discard, alive); err != nil {
			t.Error(err)
		}
		alive.Close()
	})
	failed := cmd.Wait()
	said, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	printed, ran := "", 0
	rest := string(said)
	for _, b := range blocks {
		lines := commandsOf(b)
		if b.language == "" && len(lines) == 0 {
			quoted(t, p.path, b, printed)
		}
		for _, line := range lines {
			before, after, ended := strings.Cut(rest, fmt.Sprintf("\n%s %d 0\n", mark, ran))
			if !ended {
				t.Fatalf("line %d of %s: %s%v\n%s", b.line, p.path, line, failed, rest)
			}
			printed, rest, ran = printed+before+"\n", after, ran+1
		}
	}
	if failed != nil || ran != len(commands) {
		t.Errorf("%d commands ran, expected %d: %v", ran, len(commands), failed)
	}
	for _, want := range p.says {
		if !strings.Contains(printed, want) {
			t.Errorf("nothing printed %q in\n%s", want, printed)
		}
	}
	if p.path == "docs/models.md" {
		for _, file := range []string{"trained.onnx", "tuned.onnx"} {
			m, err := loadModel(filepath.Join(dir, file))
			if err != nil || m.Graph.Inputs()[0].Name != "image" {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// tiedFiles are a language model whose embedding and output projection are one weight, and its rows.
func tiedFiles(t *testing.T, dir string) {
	t.Helper()
	for name, from := range sorted.All(map[string]string{"lm.onnx": "tied.onnx", "tokens.csv": "tied.csv"}) {
		data, err := os.ReadFile(filepath.Join("../../models/testdata/ties", from))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// quoted compares output that a page quotes with what was printed so far, line by line: all of it
// but numbers and the engine, because commands are made shorter here and machines differ.
func quoted(t *testing.T, path string, b fence, printed string) {
	t.Helper()
	lines := map[string]bool{}
	for line := range strings.Lines(printed) {
		lines[withoutNumbers(line)] = true
	}
	for line := range strings.Lines(b.text) {
		if want := withoutNumbers(line); want != "" && !strings.Contains(line, "…") && !lines[want] {
			t.Errorf("line %d of %s: nothing printed %q", b.line, path, strings.TrimSpace(line))
		}
	}
}

var (
	digests  = regexp.MustCompile(`sha256:[0-9a-f]+`)
	numerals = regexp.MustCompile(`[-−]?[0-9][0-9.,]*(e[-+][0-9]+)?`)
)

// withoutNumbers is a line in which numbers are all the same, and so are space and engines.
func withoutNumbers(line string) string {
	line = strings.NewReplacer("–", "0", engineTitle("portable"), engineTitle("ort"), "threads", "thread").Replace(line)
	line = numerals.ReplaceAllString(digests.ReplaceAllString(line, "sha256:0"), "0")
	return strings.Join(strings.Fields(line), " ")
}

// TestTutorialSCML runs every command of docs/scml.md. What is in Python is for the league's own
// program, which is none of ours.
func TestTutorialSCML(t *testing.T) {
	longtest.Nightly(t)
	tutorial(t, "scml", 28, "units of product 2, from rows to columns", "worst error", "6 of 6 worlds", "no problems", "micro: 4670 samples", "published runs/manager", "first  penguin", "second  second:no-coordinator", "the agent is ", "is worth", "the Python package lita")
}

// TestTutorialLive runs every command of docs/live.md.
func TestTutorialLive(t *testing.T) {
	longtest.Nightly(t)
	tutorial(t, "live", 6, "12154 messages of 2000-03-01", "demo: 291 decisions, the last at 2013-03-01", "12155 events lead to 291 decisions", "bar to orders without the policy, 99 %")
}

// tutorial runs every command of a page of docs as it is written, in order, in an empty folder, and
// looks for what they should print. A text that a command reads from the page is a part of it.
func tutorial(t *testing.T, page string, count int, wants ...string) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, bin, self := t.TempDir(), t.TempDir(), apptest.Program(t)
	if err := os.Symlink(self.Path, filepath.Join(bin, "onnxrl")); err != nil {
		t.Fatal(err)
	}
	printed, commands := "", 0
	for _, b := range fences(t, filepath.Join(root, "docs", page+".md")) {
		for _, text := range commandsOf(b) {
			cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", text)
			cmd.Dir, cmd.Env = dir, append(self.Env, "PATH="+bin+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("line %d of docs/%s.md: %s%v\n%s", b.line, page, text, err, out)
			}
			printed += string(out)
			commands++
		}
	}
	if commands != count {
		t.Errorf("%d commands ran", commands)
	}
	for _, want := range wants {
		if !strings.Contains(printed, want) {
			t.Errorf("nothing printed %q in\n%s", want, printed)
		}
	}
}

type fence struct {
	language, text string
	line           int
}

// fences returns the blocks of code of a Markdown file.
func fences(t *testing.T, path string) (out []fence) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var open *fence
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		language, mark := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case mark && open == nil:
			open = &fence{language: language, line: n + 1}
		case mark:
			out, open = append(out, *open), nil
		case open != nil:
			open.text += line
		}
	}
	if open != nil {
		t.Fatalf("%s: the block of line %d has no end", path, open.line)
	}
	return out
}

// TestCommandsInText finds every command and flag that the README and docs name between backquotes,
// and that of the experiments and their comments.
func TestCommandsInText(t *testing.T) {
	files := []string{"../../README.md", "../../CONTRIBUTING.md", "../../CHANGELOG.md", shippedExperiments + "/README.md"}
	for _, pattern := range []string{shippedExperiments + "/*.yaml", "../../docs/*.md", "../../docs/evidence/*.md"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatalf("%s: %v %v", pattern, more, err)
		}
		files = append(files, more...)
	}
	named, tests := 0, 0
	root := (&app{}).command()
	spans, flags := regexp.MustCompile("(?m)`onnxrl ([^`\n]+)`|^#   onnxrl (.+)$"), regexp.MustCompile(`^\[?--([a-z-]+)`)
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, ".md") {
			for _, b := range fences(t, path) {
				for _, line := range strings.Split(strings.ReplaceAll(b.text, "&&", "\n"), "\n") {
					text = append(text, "\n`"+strings.TrimSpace(line)+"`"...)
				}
			}
		}
		for _, m := range spans.FindAllStringSubmatch(string(text), -1) {
			words := strings.Fields(strings.ReplaceAll(m[1]+m[2], `\|`, "|"))
			cmds := []*cobra.Command{root}
			for len(words) > 0 && cmds[0].HasSubCommands() {
				if named := func(c *cobra.Command) bool { return c.Name() == words[0] }; cmds[0].Runnable() && !slices.ContainsFunc(cmds[0].Commands(), named) {
					break // A command that has others beside its own arguments.
				}
				var next []*cobra.Command
				for _, name := range strings.Split(words[0], "|") {
					i := slices.IndexFunc(cmds[0].Commands(), func(c *cobra.Command) bool { return c.Name() == name })
					if i < 0 {
						t.Errorf("%s: %s: there is no command %q", path, m[0], name)
						continue
					}
					next = append(next, cmds[0].Commands()[i])
				}
				if len(next) == 0 {
					break
				}
				cmds, words = next, words[1:]
			}
			for _, w := range words {
				name := flags.FindStringSubmatch(w)
				if name == nil {
					continue
				}
				for _, c := range cmds {
					if c.InheritedFlags(); c.Flag(name[1]) == nil {
						t.Errorf("%s: %s: %s has no flag --%s", path, m[0], c.CommandPath(), name[1])
					}
				}
			}
			named++
		}
		for _, m := range regexp.MustCompile("(?m)`(?:[A-Z_]+=[^ `\n]+ )*go test ([^`\n]+)`").FindAllStringSubmatch(string(text), -1) {
			goTest(t, path, m[1])
			tests++
		}
	}
	if tests < 10 {
		t.Errorf("%d commands of tests found", tests)
	}
	if named < 30 {
		t.Errorf("%d commands found", named)
	}
}

// goTest checks the arguments of a go test in a text: its packages are there, and a test or
// benchmark for each name that it asks for.
func goTest(t *testing.T, path, args string) {
	t.Helper()
	args, _, _ = strings.Cut(args, " #")
	var names []string
	pattern := ""
	words := strings.Fields(args)
	for i, w := range words {
		switch {
		case strings.HasPrefix(w, "./") && w != "./...":
			if _, err := os.Stat(filepath.Join("../..", w)); err != nil {
				t.Errorf("%s: go test %s: %v", path, args, err)
				return
			}
			names = append(names, testsBelow(t, filepath.Join("../..", w))...)
		case (w == "-run" || w == "-bench") && i+1 < len(words) && words[i+1] != "'^$'":
			pattern = strings.Trim(words[i+1], "'")
		}
	}
	for _, want := range strings.Split(pattern, "|") {
		re, err := regexp.Compile(want)
		if err != nil || want != "" && !slices.ContainsFunc(names, re.MatchString) {
			t.Errorf("%s: go test %s: there is no %q: %v", path, args, want, err)
		}
	}
}
