package bars

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
	utf "golang.org/x/text/encoding/unicode"
)

// plainText reads a text as UTF-8 with lines that end in \n, without a byte order mark: from UTF-8,
// from UTF-16, which Excel calls Unicode text, from GB18030, which Chinese programs write, and with
// lines that end in \r alone, as old programs for the Macintosh write them. first is the first line.
func plainText(in io.Reader) (text io.Reader, first string, err error) {
	buf, head, err := peek(in)
	if err != nil {
		return nil, "", err
	}
	if order, mark, ok := ofUTF16(head); ok {
		if buf, head, err = peek(utf.UTF16(order, mark).NewDecoder().Reader(buf)); err != nil {
			return nil, "", err
		}
	}
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		if _, err := buf.Discard(3); err != nil {
			return nil, "", err
		}
		head = head[3:]
	}
	text = buf
	if bytes.ContainsRune(head, '\r') && !bytes.ContainsRune(head, '\n') {
		head, text = bytes.ReplaceAll(head, []byte("\r"), []byte("\n")), &lineEnds{in: buf}
	}
	first, _, _ = strings.Cut(string(head), "\n")
	return decoded(text, first), first, nil
}

// Text is what a file of text says, in UTF-8, however it is encoded: see plainText.
func Text(file []byte) (string, error) {
	in, _, err := plainText(bytes.NewReader(file))
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(in)
	return string(text), err
}

// peek gives the beginning of a text.
func peek(in io.Reader) (*bufio.Reader, []byte, error) {
	buf := bufio.NewReaderSize(in, 1<<16)
	head, err := buf.Peek(4096)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	return buf, bytes.Clone(head), nil
}

// ofUTF16 recognises UTF-16 by its byte order mark or, without one, by one byte of two that is 0 in
// what begins like a header in Latin letters.
func ofUTF16(head []byte) (utf.Endianness, utf.BOMPolicy, bool) {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return utf.LittleEndian, utf.UseBOM, true
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return utf.BigEndian, utf.UseBOM, true
	case len(head) < 8:
		return utf.LittleEndian, utf.IgnoreBOM, false
	}
	zeros := [2]int{}
	for i, b := range head[:8] {
		if b == 0 {
			zeros[i%2]++
		}
	}
	return map[bool]utf.Endianness{false: utf.LittleEndian, true: utf.BigEndian}[zeros[0] > 0], utf.IgnoreBOM, zeros == [2]int{4, 0} || zeros == [2]int{0, 4}
}

// lineEnds makes \n of \r and of \r\n.
type lineEnds struct {
	in *bufio.Reader
	// after says that the last byte was \r.
	after bool
}

func (r *lineEnds) Read(to []byte) (n int, err error) {
	for n == 0 && err == nil && len(to) > 0 {
		var got int
		got, err = r.in.Read(to)
		for _, b := range to[:got] {
			skip := r.after && b == '\n'
			if r.after = b == '\r'; skip {
				continue
			}
			if r.after {
				b = '\n'
			}
			to[n] = b
			n++
		}
	}
	return n, err
}

// decoded reads a text whose first line is given in UTF-8: the text itself, or what it is in
// GB18030, which Chinese programs write.
func decoded(in io.Reader, first string) io.Reader {
	if utf8.ValidString(first) {
		return in
	}
	line, err := simplifiedchinese.GB18030.NewDecoder().String(first)
	if err != nil || strings.ContainsFunc(line, func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return in
	}
	return simplifiedchinese.GB18030.NewDecoder().Reader(in)
}
