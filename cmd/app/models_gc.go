package app

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// collectedDoc is what was collected, as JSON.
type collectedDoc struct {
	Store  string `json:"store"`
	DryRun bool   `json:"dry_run"`
	// Removed are the versions that are, or would be, removed; Kept counts those that stay, Recent
	// those of them that stay for their age alone.
	Removed []versionDoc `json:"removed"`
	Kept    int          `json:"kept"`
	Recent  int          `json:"recent"`
	Files   int          `json:"files"`
	Bytes   int64        `json:"bytes"`
}

func (a *app) modelsGCCommand() *cobra.Command {
	var store storeFlag
	var dry bool
	var keepLast int
	var grace time.Duration
	var neededBy []string
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove versions that nothing needs",
		Long: `Remove versions that nothing needs, and files that belong to no version. What has an alias stays, what such a version was made
from stays, and so does what is younger than --grace: another program may be about to refer to it. Publishers and pulls may go
on at the same time. Versions of other stores that were made from ones of this store count where they belong to the same run or
search, and with --needed-by.`,
		Example: `  onnxrl models gc --dry-run --keep-last 3
  onnxrl models gc --needed-by 'runs/*/artifacts'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if grace < 0 {
				return fmt.Errorf("--grace %v: expected no negative time", grace)
			}
			o := artifact.CollectOptions{KeepLast: keepLast, DryRun: dry}
			if grace > 0 {
				o.Before = time.Now().Add(-grace)
			}
			s, err := artifact.Open(store.target(), artifact.Options{MustExist: true})
			if err != nil {
				return err
			}
			defer s.Close()
			others, err := openStores(neededBy)
			if err != nil {
				return fmt.Errorf("--needed-by: %w", err)
			}
			own, err := relatives(s)
			if err != nil {
				return err
			}
			for _, other := range append(others, own...) {
				defer other.Close()
				list, err := other.List()
				if err != nil {
					return fmt.Errorf("%s, whose versions may be made from ones of this store: %w", other.Dir(), err)
				}
				for _, v := range list {
					o.Keep = append(o.Keep, v.Manifest.Parents...)
				}
			}
			c, err := s.Collect(cmd.Context(), o)
			if err != nil {
				return err
			}
			if a.json {
				doc := collectedDoc{Store: store.target(), DryRun: dry, Removed: []versionDoc{}, Kept: c.Kept, Recent: c.Recent, Files: c.Blobs, Bytes: c.Bytes}
				for _, v := range c.Removed {
					doc.Removed = append(doc.Removed, docOf(v))
				}
				return a.printJSON(doc)
			}
			return printCollected(a.out, c, dry, grace)
		},
	}
	store.add(cmd)
	fl := cmd.Flags()
	fl.BoolVar(&dry, "dry-run", false, "say what would be removed and remove nothing")
	fl.IntVar(&keepLast, "keep-last", 0, "keep the versions of each name that were published last, this many of them")
	fl.DurationVar(&grace, "grace", time.Hour, "keep what was published, and files that were written, within this time")
	fl.StringArrayVar(&neededBy, "needed-by", nil, "another store, or a pattern of several such as 'runs/*/artifacts', whose versions were made from ones of this store")
	return cmd
}

func printCollected(out io.Writer, c artifact.Collected, dry bool, grace time.Duration) error {
	if len(c.Removed) > 0 {
		w := printable.NewTable(out)
		fmt.Fprintln(w, "name\tversion\tkind\tpublished\tsize\tenv steps")
		for _, v := range c.Removed {
			m := v.Manifest
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, artifact.Short(v.Digest), dash(m.Kind), published(v), byteCount(v.Size()), dash(nonZero(m.EnvStep)))
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	recent := ""
	if c.Recent > 0 {
		recent = fmt.Sprintf(", %d of them only because they are younger than %v", c.Recent, grace)
	}
	_, err := fmt.Fprintf(out, "%s %s and %s, %s; %s kept%s\n", verb, plural(len(c.Removed), "version"), plural(c.Blobs, "file"), byteCount(c.Bytes), plural(c.Kept, "version"), recent)
	return err
}

// openStores opens the stores of some directories and patterns of directories, each once, in order.
func openStores(dirs []string) ([]*artifact.Store, error) {
	var paths []string
	for _, d := range dirs {
		list, err := expand(d)
		if err != nil {
			return nil, err
		}
		paths = append(paths, list...)
	}
	var stores []*artifact.Store
	for i, p := range paths {
		if slices.Contains(paths[:i], p) {
			continue
		}
		s, err := artifact.Open(p, artifact.Options{MustExist: true})
		if err != nil {
			return nil, err
		}
		stores = append(stores, s)
	}
	return stores, nil
}

// expand lists the directories that fit a pattern; what is no pattern, or exists as it is written,
// stands for itself.
func expand(pattern string) ([]string, error) {
	if _, err := os.Stat(pattern); err == nil || !strings.ContainsAny(pattern, "*?[") {
		return []string{pattern}, nil
	}
	list, err := filepath.Glob(pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("pattern %q: it fits no directory", pattern)
	}
	return list, nil
}
