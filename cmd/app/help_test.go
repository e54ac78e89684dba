package app

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestTablesFold: at 60 columns no line of a table is wider, and nothing of it is lost.
func TestTablesFold(t *testing.T) {
	wide := apptest.Succeed(t, "algo", "ls")
	t.Setenv("COLUMNS", "60")
	narrow := apptest.Succeed(t, "algo", "ls")
	for line := range strings.Lines(narrow) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if a, b := strings.Fields(wide), strings.Fields(narrow); wide == narrow || len(a) != len(b) {
		t.Errorf("%d words, and %d folded:\n%s", len(a), len(b), narrow)
	}
}

// TestHelp: every command's help is at most 80 columns wide and about a screen long, and has all
// flags; those that it only names have a row in docs/flags.md.
func TestHelp(t *testing.T) {
	const most = 62
	text, err := os.ReadFile("../../docs/flags.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	root := newApp("onnxrl", nil, nil, nil)
	root.kinds = kinds.All()
	commands := 0
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		path := strings.Fields(c.CommandPath())[1:]
		if len(path) > 0 && path[0] == "completion" || c.Hidden {
			return
		}
		commands++
		help := apptest.Succeed(t, append(path, "--help")...)
		if n := strings.Count(help, "\n"); n > most {
			t.Errorf("%s --help has %d lines, expected %d at most", c.CommandPath(), n, most)
		}
		for line := range strings.Lines(help) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s --help: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		_, section, _ := strings.Cut(page, "\n## onnxrl "+strings.Join(path, " ")+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		_, shared, _ := strings.Cut(page, "\n## Flags of several commands\n")
		shared, _, _ = strings.Cut(shared, "\n## ")
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" && !strings.Contains(help, "--"+f.Name) {
				t.Errorf("%s --help: no --%s", c.CommandPath(), f.Name)
			}
			name, usage := pflag.UnquoteUsage(f)
			if row := fmt.Sprintf("| `--%s` | %s |\n", strings.TrimSpace(f.Name+" "+name), usage); f.Annotations[rareFlag] != nil && !strings.Contains(section+shared, row) {
				t.Errorf("docs/flags.md: no row in %s: %s", c.CommandPath(), row)
			}
		})
	}
	walk(root.command())
	if commands < 80 {
		t.Errorf("%d commands", commands)
	}
	if help := apptest.Succeed(t, "--help"); !strings.HasPrefix(help, "Reinforcement learning ") || !strings.Contains(help, "\nTrading:\n  live ") {
		t.Errorf("the program's help:\n%s", help)
	}
}

// TestHelpFollowsTheTerminal: help is as wide as the terminal, up to a width that is easy to read.
func TestHelpFollowsTheTerminal(t *testing.T) {
	for columns, most := range sorted.All(map[string]int{"60": 60, "200": maxHelpWidth}) {
		t.Setenv("COLUMNS", columns)
		widest := 0
		for line := range strings.Lines(apptest.Succeed(t, "doctor", "--help")) {
			widest = max(widest, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
		}
		if widest > most || widest < most-10 {
			t.Errorf("%s columns: the widest line has %d", columns, widest)
		}
	}
}
