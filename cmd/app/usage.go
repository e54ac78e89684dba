package app

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/configs"
)

// usageError says that a command line names a command or a flag that there is not.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// sayUsage makes errors about a command line say what is expected: the number of arguments that a
// command takes, and the commands and flags that are nearest to what there is not. Commands that only
// hold others, whose misspelt ones cobra would take for a request for help, run as such.
func sayUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return fmt.Errorf("%w; usage: %s", err, cmd.UseLine())
			}
			return nil
		}
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args, cmd.RunE = cobra.ArbitraryArgs, group
	}
	cmd.SetFlagErrorFunc(unknownFlag)
	for _, sub := range cmd.Commands() {
		sayUsage(sub)
	}
}

// group runs a command that only holds others.
func group(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return &usageError{fmt.Sprintf("%s has no command %q; %s", cmd.CommandPath(), args[0], configs.Nearest(args[0], names))}
}

// unknownFlag names the flags that are nearest to one that there is not.
func unknownFlag(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	slices.Sort(names)
	text := err.Error()
	if name := unknown.GetSpecifiedName(); unknown.GetSpecifiedShortnames() == "" {
		text += "; " + strings.ReplaceAll(configs.Nearest("--"+name, names), `"`, "")
	}
	return &usageError{fmt.Sprintf("%s; onnxrl %s --help lists them", text, strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name())))}
}

// sayTopics makes the command help refuse commands that there are not.
func sayTopics(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, help := range root.Commands() {
		if help.Name() != "help" {
			continue
		}
		help.Run, help.RunE = nil, func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 && cmd.HasSubCommands() {
				return group(cmd, rest)
			}
			cmd.InitDefaultHelpFlag()
			return cmd.Help()
		}
	}
}

// pointerMark begins the files that Git LFS leaves where a file's bytes were not fetched.
const pointerMark = "version https://git-lfs.github.com/spec/"

// withPointers explains an error by the files that it names, or the command line does, of which there
// is but the pointer that Git LFS has of them.
func withPointers(text string, args []string) string {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \"',;()\n", r) })
	for _, arg := range args {
		if _, value, ok := strings.Cut(arg, "="); ok {
			words = append(words, value)
		}
		words = append(words, arg)
	}
	for _, word := range words {
		for _, path := range []string{word, strings.TrimRight(word, ":"), strings.SplitN(word, ":", 2)[0]} {
			info, err := os.Stat(path)
			if err != nil || !info.Mode().IsRegular() || info.Size() > 1024 {
				continue
			}
			if head, err := os.ReadFile(path); err == nil && strings.HasPrefix(string(head), pointerMark) {
				first, _, _ := strings.Cut(text, "\n")
				size := ""
				if m := pointerSize.FindStringSubmatch(string(head)); m != nil {
					size = " of " + m[1] + " bytes"
				}
				return fmt.Sprintf("%s is a pointer of Git LFS to a file%s that is not here; 'git lfs pull' fetches it (%s)", path, size, first)
			}
		}
	}
	return text
}

var pointerSize = regexp.MustCompile(`(?m)^size (\d+)$`)
