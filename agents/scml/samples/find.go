package samples

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// worldFiles are those of which a folder with any is one of a world.
var worldFiles = []string{"negotiations.csv", "contracts.csv", "info.json"}

// Find lists the folders of worlds below a folder, in order: those that have negotiations.csv,
// contracts.csv or info.json. Folders that are being written are left out. One of these files stands
// for its folder.
func Find(ctx context.Context, root string) ([]string, error) {
	var list []string
	if info, err := os.Stat(root); err == nil && !info.IsDir() && slices.Contains(worldFiles, filepath.Base(root)) {
		root = filepath.Dir(root)
	}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if strings.HasSuffix(path, ".partial") {
			return fs.SkipDir
		}
		for _, name := range worldFiles {
			if _, err := os.Stat(filepath.Join(path, name)); err == nil {
				list = append(list, path)
				return fs.SkipDir
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: there is no folder of a world in it: none with %s", root, strings.Join(worldFiles, ", "))
	}
	slices.Sort(list)
	return list, nil
}
