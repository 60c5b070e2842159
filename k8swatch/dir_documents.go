package k8swatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// document is one YAML or JSON document of a file.
type document struct {
	line int // where it begins, from 1
	text []byte
}

// splitJSON splits concatenated JSON values. What follows a syntax error is lost.
func splitJSON(text []byte) ([]document, error) {
	var out []document
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		begin := int(d.InputOffset())
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, fmt.Errorf("line %d: %w", lineAt(text, offsetOf(err, len(text))), err)
		}
		begin += bytes.Index(text[begin:], raw)
		out = append(out, document{line: lineAt(text, begin), text: raw})
	}
}

func offsetOf(err error, end int) int {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return int(syntax.Offset)
	}
	return end
}

func lineAt(text []byte, offset int) int {
	return 1 + bytes.Count(text[:min(offset, len(text))], []byte("\n"))
}

// splitYAML splits at lines that begin with "---", which YAML allows nowhere
// else. What holds nothing but comments and directives is left out.
func splitYAML(text []byte) []document {
	var out []document
	line, at := 0, 0                   // of the line that is looked at
	now, begin := document{line: 1}, 0 // of the document
	flush := func() {
		now.text = text[begin:at]
		for len(now.text) > 0 && blank(firstLine(now.text)) {
			now.text, now.line = now.text[len(firstLine(now.text)):], now.line+1
		}
		if !blank(now.text) {
			out = append(out, now)
		}
	}
	for l := range bytes.Lines(text) {
		line++
		switch {
		case isMarker(l, "---"):
			flush()
			now, begin = document{line: line}, at+len("---")
		case isMarker(l, "..."):
			flush()
			now, begin = document{line: line + 1}, at+len(l)
		}
		at += len(l)
	}
	flush()
	return out
}

// isMarker: the marker alone, or with something behind it.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

func firstLine(text []byte) []byte {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return text[:i+1]
	}
	return text
}

func blank(text []byte) bool {
	for l := range bytes.Lines(text) {
		l = bytes.TrimSpace(l)
		if len(l) > 0 && l[0] != '#' && l[0] != '%' {
			return false
		}
	}
	return true
}

// stringKeys gives a value whose maps have strings for keys, as JSON wants them:
// a port number as the key of an annotation, say.
func stringKeys(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for k := range v {
			v[k] = stringKeys(v[k])
		}
	case map[any]any:
		out := make(map[string]any, len(v))
		for k, x := range v {
			out[fmt.Sprint(k)] = stringKeys(x)
		}
		return out
	case []any:
		for i := range v {
			v[i] = stringKeys(v[i])
		}
	}
	return value
}

var yamlLine = regexp.MustCompile(`\bline (\d+)`)

// toJSON converts the document. It is read as YAML 1.2, in which a name like n,
// y, on or off is a string, as the tools that write manifests take it to be. The
// line numbers of its errors are the file's.
func (d document) toJSON() ([]byte, error) {
	var root yaml.Node
	err := yaml.Unmarshal(d.text, &root)
	if err == nil {
		var value any
		datesAreStrings(&root)
		if err = root.Decode(&value); err == nil {
			return json.Marshal(stringKeys(value))
		}
	}
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.ReplaceAll(strings.TrimPrefix(text, "unmarshal errors:\n  "), "\n  ", "; ")
	if !yamlLine.MatchString(text) {
		return nil, fmt.Errorf("line %d: %s", d.line, text)
	}
	return nil, errors.New(yamlLine.ReplaceAllStringFunc(text, func(m string) string {
		n, _ := strconv.Atoi(strings.TrimPrefix(m, "line "))
		return "line " + strconv.Itoa(d.line+n-1)
	}))
}

// datesAreStrings: JSON has no dates, and "2020-01-02" must not come out as one
// with a time of day.
func datesAreStrings(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!timestamp" {
		n.Tag = "!!str"
	}
	for _, c := range n.Content {
		datesAreStrings(c)
	}
}
