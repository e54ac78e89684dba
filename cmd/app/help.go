package app

import (
	"maps"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// Widths of help: without a terminal, and the widest that is easy to read.
const (
	helpWidth    = 80
	maxHelpWidth = 100
)

// commandGroup is a part of the list of commands in help.
type commandGroup struct {
	title    string
	commands []*cobra.Command
}

// addGroups adds commands in groups. Those that cobra adds by itself are of the last group.
func addGroups(root *cobra.Command, groups []commandGroup) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title + ":"})
		for _, c := range g.commands {
			c.GroupID = g.title
		}
		root.AddCommand(g.commands...)
		root.SetHelpCommandGroupID(g.title)
		root.SetCompletionCommandGroupID(g.title)
	}
}

// usageTemplate is cobra's. The flags that all commands have are named only, and so are rare ones.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$cmds := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $cmds}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{if not .AllChildCommandsHaveGroup}}

Commands:{{range $cmds}}{{if (and (eq .GroupID "") .IsAvailableCommand)}}
  {{rpad .Name .NamePadding }} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{with index .Annotations "flags"}}

Flags:
{{.}}{{end}}{{with index .Annotations "rareFlags"}}

Further flags, which docs/flags.md explains:
{{.}}{{end}}{{if .HasAvailableInheritedFlags}}

Flags of all commands, which "{{.Root.Name}} --help" explains:
GLOBAL{{end}}{{if .HasAvailableSubCommands}}

"{{.CommandPath}} COMMAND --help" says more of a command.{{end}}
`

// wrapHelp makes the help of a command as wide as the terminal, when it is shown.
func (a *app) wrapHelp(root *cobra.Command) {
	width := min(printable.Columns(a.out), maxHelpWidth)
	if width <= 0 {
		width = helpWidth
	}
	global := "  " + strings.Join(configs.Wrap("-q --json --engine --log-level --log-format --ort-library --no-install", width-2), "\n  ")
	root.SetUsageTemplate(strings.Replace(usageTemplate, "GLOBAL", global, 1))
	show := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.Long, c.Example = wrapped(c.Long, width), continued(c.Example, width)
		explainFlags(c, width)
		show(c, args)
	})
}

// wrapped breaks paragraphs, which empty lines end, into lines of a width. Lines that begin with
// spaces stay lines.
func wrapped(text string, width int) string {
	var lines []string
	paragraph := ""
	flush := func() {
		if paragraph != "" {
			lines = append(lines, configs.Wrap(paragraph, width)...)
		}
		paragraph = ""
	}
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" || line[0] == ' ' {
			flush()
			text := strings.TrimLeft(line, " ")
			indent := line[:len(line)-len(text)]
			if len(line) > width {
				indent, text = indent+"    ", strings.Join(configs.Wrap(text, width-len(indent)-4), "\n"+indent+"    ")
				lines = append(lines, indent[4:]+text)
				continue
			}
			lines = append(lines, line)
			continue
		}
		paragraph += line + " "
	}
	flush()
	return strings.Join(lines, "\n")
}

// continued breaks command lines that are wider before a word, as shells continue them.
func continued(text string, width int) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		rest, out := line, ""
		for len(rest) > width {
			at := strings.LastIndex(rest[:width-1], " --")
			if at < 10 {
				at = strings.LastIndex(rest[:width-1], " ")
			}
			if at < 10 {
				break
			}
			out, rest = out+rest[:at]+" \\\n", "      "+rest[at+1:]
		}
		lines[i] = out + rest
	}
	return strings.Join(lines, "\n")
}

// rareFlag is the annotation of flags that help only names.
const rareFlag = "rare"

// rarely keeps the texts of flags out of help, which names them; docs/flags.md has their texts.
func rarely(fl *pflag.FlagSet, names ...string) {
	for _, name := range names {
		if err := fl.SetAnnotation(name, rareFlag, []string{""}); err != nil {
			panic(err) // No such flag: a mistake in this program.
		}
	}
}

// Annotations that the template of help reads.
const (
	flagsText = "flags"
	rareText  = "rareFlags"
)

// explainFlags writes the flags of a command down for the template.
func explainFlags(c *cobra.Command, width int) {
	shown, rare := pflag.NewFlagSet("", pflag.ContinueOnError), ""
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return // Whoever reads it knows it.
		}
		if _, ok := f.Annotations[rareFlag]; ok {
			rare += " --" + f.Name
		} else {
			shown.AddFlag(f)
		}
	})
	c.Annotations = maps.Clone(c.Annotations)
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	c.Annotations[flagsText] = strings.TrimRight(shown.FlagUsagesWrapped(width), "\n")
	if rare != "" {
		c.Annotations[rareText] = "  " + strings.Join(configs.Wrap(rare[1:], width-2), "\n  ")
	}
}
