package bars

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// shippedPrefix marks a path of the data that come with the program:
// shipped:market/us5_daily.parquet.
const shippedPrefix = "shipped:"

// input is an open file.
type input interface {
	io.Reader
	io.ReaderAt
	io.Seeker
	io.Closer
	Stat() (fs.FileInfo, error)
}

// open opens a file of the machine, or one that comes with the program.
func open(name string) (input, error) {
	shipped, ok := strings.CutPrefix(name, shippedPrefix)
	if !ok {
		return os.Open(name)
	}
	f, err := configs.Shipped().Open(shipped)
	if err != nil {
		return nil, fmt.Errorf("the program comes without such a file; there are %s", strings.Join(shippedFiles(), ", "))
	}
	in, ok := f.(input)
	if info, err := f.Stat(); !ok || err != nil || info.IsDir() {
		f.Close()
		return nil, fmt.Errorf("it is no file; there are %s", strings.Join(shippedFiles(), ", "))
	}
	return in, nil
}

// shippedFiles lists the market data that come with the program.
func shippedFiles() []string {
	var list []string
	entries, err := fs.ReadDir(configs.Shipped(), "market")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		list = append(list, shippedPrefix+path.Join("market", e.Name()))
	}
	return list
}
