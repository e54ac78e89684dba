package app

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// demoBars writes the bars of the demo from a date on as text in the order of time, raw and with their
// factors.
func demoBars(t *testing.T, from string) string {
	t.Helper()
	s := bars.DefaultSource()
	s.Path = "shipped:market/us5_daily.parquet"
	d, err := bars.Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	type line struct{ key, text string }
	var lines []line
	for _, series := range d.Series {
		for _, r := range series.Records {
			at := r.Time.Format(time.DateOnly)
			if at < from {
				continue
			}
			lines = append(lines, line{at + series.Symbol, fmt.Sprintf("%s,%s,%v,%v,%v,%v,%v,%v\n", at, series.Symbol, r.Open, r.High, r.Low, r.Close, r.Volume, r.Factor)})
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return strings.Compare(a.key, b.key) })
	var text strings.Builder
	text.WriteString("date,symbol,open,high,low,close,volume,adj_factor\n")
	for _, l := range lines {
		text.WriteString(l.text)
	}
	return text.String()
}

// TestDataLiveFollows trades from stdin, from a file that grows, after a stop, and from given
// holdings: the lines are always those of the file read whole.
func TestDataLiveFollows(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	run := apptest.Trained(t, "demo", shortDemo...)
	text := demoBars(t, "2012-01-03")
	file := apptest.Write(t, "bars.csv", text)
	args := func(from string, more ...string) []string {
		return append([]string{"data", "live", run, "--engine", portable.Name, "--from", "2012-12-03", "--set", "env.data.source.adjust=factor", "--bars", from}, more...)
	}
	whole := apptest.Succeed(t, args(file)...)
	lines := strings.SplitAfter(strings.TrimSuffix(whole, "\n"), "\n")
	if len(lines) < 20 {
		t.Fatalf("%d decisions", len(lines))
	}

	// stdin, whole and cut off.
	piped := func(text string, more ...string) apptest.Result {
		t.Helper()
		cmd := apptest.Program(t, args("-", more...)...)
		var out, errs bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(text), &out, &errs
		if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return apptest.Result{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Err: errs.String()}
	}
	// The demo's own prices are adjusted by adj_close.
	const told = "onnxrl: prices: adjusted by adj_factor\nonnxrl: WARNING: the agent's data had prices adjusted by adj_close, and these are adjusted by a factor: what it sees here is not what it learnt from\n"
	if r := piped(text); r.Code != 0 || r.Out != whole || r.Err != told {
		t.Errorf("stdin: status %d, %d of %d bytes are output\n%s", r.Code, len(r.Out), len(whole), r.Err)
	}
	cuts := 0
	for _, cut := range []int{1, 58, 300} {
		r := piped(text[:len(text)-cut])
		if r.Code != 0 || !strings.HasPrefix(whole, r.Out) || r.Out == whole || r.Out == "" || !strings.Contains(r.Err, "are not complete") && !strings.Contains(r.Err, "does not end") {
			t.Errorf("cut off %d bytes before the end: status %d, %d of %d bytes\n%s", cut, r.Code, len(r.Out), len(whole), r.Err)
		}
		cuts++
	}
	if cuts != 3 {
		t.Errorf("%d cuts", cuts)
	}
	bad := strings.Replace(text, "2012-12-10,IBM,", "2012-12-10,IBM,x", 1)
	if r := piped(bad); r.Code != 0 || strings.Count(r.Err, "\n") != 4 || !strings.Contains(r.Err, `: skipped: column "open": "x`) || !strings.Contains(r.Err, "IBM: there is no row of 2012-12-10") || !strings.HasPrefix(r.Err, told+"onnxrl: stdin, line ") {
		t.Errorf("a bad row: status %d\n%s", r.Code, r.Err)
	}

	// A file that grows, in pieces that end anywhere, until SIGTERM.
	grown := filepath.Join(t.TempDir(), "grown.csv")
	half := strings.Index(text, "2012-12-12,AAPL") + 13
	if err := os.WriteFile(grown, []byte(text[:half]), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := apptest.Program(t, args(grown, "--follow")...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := bufio.NewReader(out)
	f, err := os.OpenFile(grown, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for i, want := range lines[:15] {
		for got := ""; got == ""; {
			if got, err = read.ReadString('\n'); err != nil || got != want {
				t.Fatalf("line %d is %q, expected %q, %v\n%s", i, got, want, err, errs.String())
			}
		}
		if i == 6 { // 2012-12-11, the last complete one
			next := strings.Index(text, "2012-12-28,GOOG") + 20
			if _, err := f.WriteString(text[half:next]); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(read)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil || errs.String() != told+"onnxrl: stopping; a second signal ends the program at once\n" || !strings.HasPrefix(whole, strings.Join(lines[:15], "")+string(rest)) {
		t.Errorf("after SIGTERM: %v\n%s", err, errs.String())
	}

	// From a line that was written, the rest follows; without its time, its holdings are those of
	// the first bar.
	for _, k := range []int{0, len(lines) - 2} {
		held := apptest.Write(t, "held.json", lines[k])
		want := strings.Join(lines[k+1:], "")
		if got := apptest.Succeed(t, args(file, "--positions", held)...); got != strings.TrimSuffix(want, "\n")+"\n" {
			t.Errorf("after line %d:\n%s\nexpected\n%s", k, got, want)
		}
	}
	for _, held := range []string{`{"cash": 1234.5, "positions": {"IBM": 7}}`, "symbol,shares\nIBM,7\ncash,1234.5\n"} {
		var l liveLine
		first, _, _ := strings.Cut(apptest.Succeed(t, args(file, "--positions", apptest.Write(t, "held", held))...), "\n")
		if err := json.Unmarshal([]byte(first), &l); err != nil || l.Cash != 1234.5 || l.Positions["IBM"] != 7 || l.Positions["MSFT"] != 0 || !(l.Value > 1234.5+7*100) {
			t.Errorf("%s: %+v, %v", held, l, err)
		}
	}

	// Edits of the data and of the environment.
	renamed := strings.Replace(text, ",close,", ",last,", 1)
	if r := piped(renamed, "--set", "env.data.source.columns.close=last"); r.Code != 0 || r.Out != whole {
		t.Errorf("a column by another name: status %d\n%s", r.Code, r.Err)
	}
	free := apptest.Succeed(t, args(file, "--set", "env.fee_rate=0")...)
	if strings.Contains(whole, `"fee":0}`) || !strings.Contains(free, `"fee":0}`) || free == whole {
		t.Error("--set fee_rate=0 does not change the fees")
	}

	cases := 0
	for _, c := range []struct {
		args []string
		want string
	}{
		{args("-", "--follow"), "stdin is followed anyway"},
		{args("shipped:market/us5_daily.parquet", "--follow"), "only text that is appended to can be followed"},
		{args(filepath.Join(t.TempDir(), "none.csv"), "--follow"), "none.csv"},
		{args(file, "--set", "env.window=9"), "windows of 9 bars, the feed has 20"},
		{args(file, "--set", "data.features.indicators={sma: [3]}"), "features[5]"},
		{args(file, "--set", "data.quality.unsortedd=error"), `unknown key "unsortedd"`},
		{args(file, "--positions", filepath.Join(t.TempDir(), "none")), "none"},
		{args(file, "--positions", apptest.Write(t, "held", `{"positions": {}}`)), "cash is missing"},
		{args(file, "--positions", apptest.Write(t, "held", `{"cash": 1, "positions": {"XX": 1}}`)), "XX is none of the agent's assets, AAPL, FB"},
		{args(file, "--positions", apptest.Write(t, "held", `{"cash": -1}`)), "cash is -1"},
		{args(file, "--positions", apptest.Write(t, "held", `{"cash": 1, "positions": {"IBM": -2}}`)), "-2 shares of IBM"},
		{args(file, "--positions", apptest.Write(t, "held", `{"cash": 1, "time": "2012-12-05 00:00:00"}`)), `orders: AAPL is to ""`},
		{args(file, "--positions", apptest.Write(t, "held", strings.Replace(lines[3], "2012-12-", "2032-12-", 1))), "there are no bars of 2032-12-"},
		{args(file, "--positions", apptest.Write(t, "held", "symbol,shares\nIBM,many\n")), `line 2: "many" is not a number of shares`},
		{args(file, "--positions", apptest.Write(t, "held", "IBM 5")), "expected JSON, or CSV with the columns symbol,shares"},
	} {
		if r := apptest.Run(t, c.args...); r.Code != 1 || !strings.Contains(r.Err, c.want) {
			t.Errorf("%v: exit status %d, %s, expected %q", c.args, r.Code, r.Err, c.want)
		}
		cases++
	}
	if cases != 15 {
		t.Errorf("%d cases", cases)
	}
	if r := apptest.Run(t, args(apptest.Write(t, "cut.csv", strings.TrimSuffix(text, "\n")))...); r.Code != 0 || !strings.Contains(r.Err, "has no end: if it was cut off") || !strings.HasPrefix(r.Err, "data: prices: adjusted by adj_factor (5 of 5 symbols), which never changes for 2 of them\ndata: WARNING: the agent's data had prices adjusted by adj_close") {
		t.Errorf("a file without its last line feed: %d, %s", r.Code, r.Err)
	}
}
