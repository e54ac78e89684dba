package app

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestFirstLine: on a terminal the first line of a command that takes a while says what it does, and
// how long that usually takes; --quiet and --json leave it out.
func TestFirstLine(t *testing.T) {
	t.Chdir(t.TempDir())
	for args, want := range sorted.All(map[string]string{
		"train none":          "training none: usually seconds for classic control",
		"train none --quiet":  "",
		"train none --json":   "",
		"demo --env-steps 0":  "",
		"data prepare none":   "computing the features of none: usually seconds",
		"evaluate none":       "evaluating none: usually seconds",
		"models publish runs": "proving and publishing the policy of runs: usually seconds",
	}) {
		if err := os.MkdirAll("runs", 0o755); err != nil {
			t.Fatal(err)
		}
		said := onTerminal(t, strings.Fields(args))
		first, _, _ := strings.Cut(said, "\n")
		if has := strings.Contains(first, "usually"); has != (want != "") || !strings.Contains(first, want) {
			t.Errorf("%s: %q", args, said)
		}
	}
}

// onTerminal runs a command line whose standard error is a terminal, and returns what that shows.
func onTerminal(t *testing.T, args []string) string {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close()
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	execute(t.Context(), kinds.All(), args, strings.NewReader(""), io.Discard, slave)
	if _, err := slave.WriteString("\n.\n"); err != nil {
		t.Fatal(err)
	}
	// The terminal holds a few kilobytes until somebody reads.
	text := make([]byte, 4096)
	n, err = master.Read(text)
	if err != nil || slave.Close() != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text[:n]), "\r\n", "\n")
}
