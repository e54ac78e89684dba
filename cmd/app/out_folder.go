package app

import (
	"fmt"
	"os"
	"path/filepath"
)

// checkFolder refuses a file whose folder is not there: before any time is spent on what is to be
// written to it. An empty path is of a file that is not asked for.
func checkFolder(flag, path string) error {
	if path == "" {
		return nil
	}
	dir := filepath.Dir(path)
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%s %s: %w", flag, path, err)
	}
	if !info.IsDir() {
		return fmt.Errorf("%s %s: %s is not a folder", flag, path, dir)
	}
	return nil
}
