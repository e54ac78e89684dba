// prose writes what the Go files that standard input names say to people into files that Vale reads:
//
//	git ls-files '*.go' | go run .ci/prose.go DIR
//
// DIR/FILE.go.txt has the comments and DIR/FILE.messages.txt the texts of two words or more, which
// tests have none of. A paragraph that begins on line n is line 2n, and the lines around it are empty.
// Each ends with an exclamation mark, as Vale has sentences go on over empty lines, and behind "is 0."
package main

import (
	"bufio"
	"fmt"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		if err := extract(in.Text(), filepath.Join(os.Args[1], in.Text())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// page has paragraphs by the lines on which they begin.
type page struct {
	paragraphs map[int]string
	begin      int // of the paragraph that goes on, or 0
	last       int // its last line
}

// add puts a line into the paragraph that the line before belongs to, or begins one.
func (p *page) add(line int, text string) {
	text = strings.TrimSpace(text)
	if p.begin == 0 || line != p.last+1 || text == "" {
		p.begin = line
	}
	p.last = line
	if text == "" {
		p.begin = 0
		return
	}
	p.paragraphs[p.begin] = strings.TrimSpace(p.paragraphs[p.begin] + " " + text)
}

func (p *page) write(name string) error {
	if len(p.paragraphs) == 0 {
		return nil
	}
	most := 0
	for line := range p.paragraphs {
		most = max(most, line)
	}
	var b strings.Builder
	for line := 1; line <= most; line++ {
		text := p.paragraphs[line]
		if text != "" {
			text = strings.TrimRight(text, ".:;,!?") + "!"
		}
		b.WriteString("\n" + text + "\n")
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(b.String()), 0o644)
}

// Lines of comments that say nothing to people, items of lists, and texts of more than one word.
var (
	directive = regexp.MustCompile(`^//(go:|export |nolint|line |#nosec|\+build)|^// Code generated|^// Output:|^//\w+$`)
	item      = regexp.MustCompile(`^\s+([-*+•]|\d+[.)])\s`)
	words     = regexp.MustCompile(`\pL[\pL,;:]* \pL`)
)

func extract(name, out string) error {
	src, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	file := set.AddFile(name, -1, len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, scanner.ScanComments)
	comments, messages := &page{paragraphs: map[int]string{}}, &page{paragraphs: map[int]string{}}
	code := 0 // the line of the last token that is no comment
	text, begin, plus := "", 0, false
	flush := func() {
		if words.MatchString(text) {
			for i, line := range strings.Split(text, "\n") {
				messages.add(begin+i, line)
			}
			messages.begin = 0
		}
		text = ""
	}
	for {
		pos, tok, lit := s.Scan()
		line := file.Line(pos)
		switch {
		case tok == token.EOF:
			flush()
			if err := comments.write(out + ".txt"); err != nil || strings.HasSuffix(name, "_test.go") {
				return err
			}
			return messages.write(strings.TrimSuffix(out, ".go") + ".messages.txt")
		case tok == token.COMMENT:
			if directive.MatchString(lit) {
				continue
			}
			if line == code || line != comments.last+1 {
				comments.begin = 0 // A comment beside code is no part of that of the line before.
			}
			block := strings.HasPrefix(lit, "/*")
			for i, l := range strings.Split(strings.TrimSuffix(lit, "*/"), "\n") {
				if i == 0 {
					l = l[2:]
				}
				switch {
				case item.MatchString(l):
					comments.begin = 0
				case !block && (strings.HasPrefix(l, "\t") || strings.HasPrefix(l, "  ")):
					if comments.begin == 0 || comments.last != line+i-1 {
						l = "" // Code; a line of an item goes on with it.
					}
				}
				comments.add(line+i, l)
			}
			if line == code {
				comments.begin = 0
			}
		case tok == token.STRING:
			value, err := strconv.Unquote(lit)
			if err != nil {
				return fmt.Errorf("%s:%d: %w", name, line, err)
			}
			if !plus {
				flush()
			}
			if text == "" {
				begin = line
			}
			text, plus = text+value, false
			code = line + strings.Count(lit, "\n")
		case tok == token.ADD && text != "":
			plus, code = true, line
		case tok == token.SEMICOLON && lit == "\n":
		default:
			code, plus = line, false
		}
	}
}
