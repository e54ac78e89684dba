package app

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/runtime/objects"
)

// References (URL#sha256:…, see package objects) may stand wherever a command reads a file or a
// directory. Those among arguments and flags become paths of copies before the command runs, so no
// command knows of them; what writes a path down calls [objects.Abs], which makes the reference of
// it again. Documents keep theirs, which whoever opens a file fetches.

// keepsReferences is the annotation of commands that do more with arguments that are references
// than to read what they name.
const keepsReferences = "references"

// writtenFlags are the flags that name what commands write, and so no references.
var writtenFlags = []string{"calls", "decisions", "dir", "logs", "metrics", "optimized", "out", "picture", "report", "store", "to"}

// isWritten reports whether a flag names what is written. A checkpoint may be read, for another
// directory to go on from it; that of the run itself, which would change, refuses.
func isWritten(flag, reference string) bool {
	return slices.Contains(writtenFlags, flag) || flag == "resume" && !strings.Contains(reference, "/checkpoints/")
}

// keptFlags are those whose references are not fetched here: texts, edits of documents, and what is
// fetched where more is known about it.
var keptFlags = []string{"agents", "description", "set"}

// localReferences puts the paths of copies in place of arguments and values of flags that are
// references.
func localReferences(cmd *cobra.Command, args []string) (err error) {
	if cmd.Annotations[keepsReferences] == "" {
		for i := range args {
			if args[i], err = localValue(args[i]); err != nil {
				return err
			}
		}
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err == nil {
			err = localFlag(f)
		}
	})
	return err
}

// localFlag is localReferences for one flag.
func localFlag(f *pflag.Flag) error {
	if slices.Contains(keptFlags, f.Name) {
		return nil
	}
	list := []string{f.Value.String()}
	many, isMany := f.Value.(pflag.SliceValue)
	if isMany {
		list = many.GetSlice()
	} else if f.Value.Type() != "string" {
		return nil
	}
	changed := false
	for i, s := range list {
		if objects.IsReference(s) && isWritten(f.Name, s) {
			return fmt.Errorf("--%s %s: what a reference names is only read; expected a path", f.Name, s)
		}
		path, err := localValue(s)
		if err != nil {
			return fmt.Errorf("--%s: %w", f.Name, err)
		}
		changed = changed || path != s
		list[i] = path
	}
	switch {
	case !changed:
		return nil
	case isMany:
		return many.Replace(list)
	}
	return f.Value.Set(list[0])
}

// localValue returns the path of a copy for a reference, also behind NAME=, and other values as
// they are.
func localValue(s string) (string, error) {
	if !objects.IsReference(s) {
		return s, nil
	}
	name, at := "", s
	if i := strings.IndexByte(s, '='); i >= 0 && i < strings.Index(s, "://") {
		name, at = s[:i+1], s[i+1:]
	}
	path, err := objects.Local(at)
	return name + path, err
}
