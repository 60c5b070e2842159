package ads

import (
	"strings"
	"testing"
)

func TestWithoutKeys(t *testing.T) {
	for in, kept := range map[string]string{
		"no such cluster": "no such cluster",
		`bad { private_key { inline_string: "SESAME" } }`:  "bad { ",
		`bad {"privateKey":{"inlineBytes":"SESAME"}}`:      `bad {"`,
		"bad -----BEGIN RSA PRIVATE KEY-----\nSESAME":      "bad -----BEGIN RSA ",
		`bad { certificate_chain { inline_bytes: "x" } pr`: "bad { certificate_chain { ",
		"": "",
	} {
		got := withoutKeys(in)
		if !strings.HasPrefix(got, kept) || strings.Contains(got, "SESAME") || (got != in && !strings.Contains(got, "not shown")) {
			t.Errorf("%q became %q", in, got)
		}
	}
}
