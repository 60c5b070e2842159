package k8swatch

import (
	"fmt"
	"strings"
	"testing"
)

func TestDocuments(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"one", "a: 1\n", `1 {"a":1}`},
		{"several, and what is none", "# a comment\n---\na: 1\n--- # another\n---\n\n# why\nb: 2\n...\nc: 3\n---\n", `3 {"a":1} | 8 {"b":2} | 10 {"c":3}`},
		{"behind the marker", "--- {a: 1}\n--- \"b\"\n", `1 {"a":1} | 2 "b"`},
		{"directives", "%YAML 1.2\n---\na: 1\n", `3 {"a":1}`},
		{"windows", "a: 1\r\n---\r\nb: 2\r\n", `1 {"a":1} | 3 {"b":2}`},
		{"no marker inside a block", "a: |\n  x\n  ---\n  y\n", `1 {"a":"x\n---\ny\n"}`},
		{"strings that YAML 1.1 takes for something else", "a: y\nb: 2020-01-02\nc: on\nd: 2020-01-02T03:04:05Z\n", `1 {"a":"y","b":"2020-01-02","c":"on","d":"2020-01-02T03:04:05Z"}`},
		{"keys", "8080: a\ntrue: b\n", `1 {"8080":"a","true":"b"}`},
		{"anchors", "a: &x {b: 1}\nc: {<<: *x}\n", `1 {"a":{"b":1},"c":{"b":1}}`},
		{"broken", "a: 1\n---\nb: 2\nc: }\n", `1 {"a":1} | error line 3: did not find expected node content`},
		{"given twice", "a: 1\n---\nb: 2\nb: 3\n", `1 {"a":1} | error line 4: mapping key "b" already defined at line 3`},
	} {
		var got []string
		for _, d := range splitYAML([]byte(c.in)) {
			if j, err := d.toJSON(); err != nil {
				got = append(got, "error "+err.Error())
			} else {
				got = append(got, fmt.Sprintf("%d %s", d.line, j))
			}
		}
		if s := strings.Join(got, " | "); s != c.want {
			t.Errorf("%s: %s\nwant %s", c.name, s, c.want)
		}
	}
}

func TestJSONDocuments(t *testing.T) {
	docs, err := splitJSON([]byte("{\"a\":1}\n\n\t{\"b\":\n2}\n{\"c\":,}"))
	var got []string
	for _, d := range docs {
		got = append(got, fmt.Sprintf("%d %s", d.line, d.text))
	}
	if s := strings.Join(got, " | "); s != "1 {\"a\":1} | 3 {\"b\":\n2}" {
		t.Error(s)
	}
	if err == nil || !strings.HasPrefix(err.Error(), "line 5: ") {
		t.Errorf("error %v", err)
	}
}
