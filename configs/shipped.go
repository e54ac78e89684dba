package configs

import (
	"embed"
	"io/fs"
)

//go:embed experiments
var experiments embed.FS

// Shipped returns the experiments that come with the program: *.yaml files at the top of the file
// system.
func Shipped() fs.FS {
	sub, err := fs.Sub(experiments, "experiments")
	if err != nil {
		panic(err) // The directory is embedded above; only a broken build gets here.
	}
	return sub
}
