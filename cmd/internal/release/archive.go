package main

import (
	"archive/tar"
	"archive/zip"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"time"
)

// entry is a file of an archive, with slashes in its name.
type entry struct {
	name    string
	mode    int64
	content []byte
}

// writeArchive writes a new file in the form of pack.
func writeArchive(path string, pack func(io.Writer, []entry, time.Time) error, entries []entry, at time.Time) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(pack(f, entries, at), f.Close())
}

// tarball writes entries that are all of one time and of nobody.
func tarball(w io.Writer, entries []entry, at time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	a := tar.NewWriter(z)
	for _, e := range entries {
		if err := a.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content)), ModTime: at}); err != nil {
			return err
		}
		if _, err := a.Write(e.content); err != nil {
			return err
		}
	}
	return errors.Join(a.Close(), z.Close())
}

// zipped writes entries that are all of one time.
func zipped(w io.Writer, entries []entry, at time.Time) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(e.mode))
		f, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := f.Write(e.content); err != nil {
			return err
		}
	}
	return z.Close()
}
