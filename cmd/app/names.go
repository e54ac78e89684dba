package app

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
)

// Option changes what a program says of itself.
type Option func(*app)

// Name is what the program is called in help, errors and advice, and by what it has written. The
// default is the name of the file that runs.
func Name(name string) Option { return func(a *app) { a.name = name } }

// Version is the program's version, which doctor, servers, checkpoints and artefacts give. The
// default is the revision that it was built from, or its module's version.
func Version(v string) Option { return func(a *app) { a.version = v } }

// fileName is the name of the file that runs.
func fileName() string {
	if len(os.Args) == 0 {
		return "onnxrl"
	}
	return strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
}

// program is the name and version that what the program writes is marked with.
func (a *app) program() string { return a.name + " " + a.version }

// say writes a line on standard error.
func (a *app) say(format string, args ...any) {
	fmt.Fprintf(a.err, "%s: %s\n", a.name, a.named(fmt.Sprintf(format, args...)))
}

// named puts the program's own name into advice, which is written as onnxrl's command lines: those
// of subcommands that the program has.
func (a *app) named(text string) string {
	if a.advice == nil {
		return text
	}
	return a.advice.ReplaceAllString(text, strings.ReplaceAll(a.name, "$", "$$")+" $1")
}

// nameCommands makes the texts of all commands say the program's name, where it isn't onnxrl.
func (a *app) nameCommands(root *cobra.Command) {
	if a.name == "onnxrl" {
		return
	}
	var verbs []string
	for _, c := range root.Commands() {
		verbs = append(verbs, regexp.QuoteMeta(c.Name()))
	}
	a.advice = regexp.MustCompile(`\bonnxrl (` + strings.Join(verbs, "|") + `)\b`)
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		c.Short, c.Long, c.Example = a.named(c.Short), a.named(c.Long), a.named(c.Example)
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root)
}
