package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func run() *Run {
	r := New("quick", time.Unix(0, 0))
	for _, hosts := range []int{300, 3407, 100_000} {
		r.Add(Row{Scenario: "edit", Variant: "route", Subject: "holdfast", Source: "synthetic", Hosts: hosts, Clients: 1, Figures: map[Metric]float64{
			Derivations: 3, Bytes: 1000, CPU: 0.5, Acked99: 2 + float64(hosts)/1e5,
		}})
	}
	return r
}

// The gate closes for what grew by more than a tenth, and for what is missing;
// not for what the machine decides.
func TestGrowth(t *testing.T) {
	cases := []struct {
		name   string
		change func(*Row)
		want   string // part of the one line; empty: none
	}{
		{"nothing", func(*Row) {}, ""},
		{"a tenth", func(x *Row) { x.Figures[Bytes] = 1100 }, ""},
		{"more", func(x *Row) { x.Figures[Bytes] = 1101 }, "bytes is 1101, was 1000"},
		{"less", func(x *Row) { x.Figures[Bytes] = 10 }, ""},
		{"a few more derivations", func(x *Row) { x.Figures[Derivations] = 3.9 }, ""},
		{"one whole derivation more", func(x *Row) { x.Figures[Derivations] = 4 }, "derivations is 4, was 3"},
		{"time", func(x *Row) { x.Figures[CPU] = 50 }, ""},
		{"another row", func(x *Row) { x.Variant = "other" }, "was not measured"},
	}
	for _, c := range cases {
		now := run()
		c.change(&now.Rows[1])
		got := now.Growth(run())
		if (c.want == "") != (len(got) == 0) || c.want != "" && !strings.Contains(got[0], c.want) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
	now := run()
	now.Rows[0].Figures[Removed] = 1
	was := run()
	was.Rows[0].Figures[Removed] = 0
	if got := now.Growth(was); len(got) != 1 {
		t.Errorf("from nothing to something: %q", got)
	}
}

func TestSaveAllWritesJSONAndPictures(t *testing.T) {
	folder := t.TempDir()
	r := run()
	if err := r.SaveAll(folder); err != nil {
		t.Fatal(err)
	}
	back, err := Read(filepath.Join(folder, "quick.json"))
	if err != nil || len(back.Rows) != len(r.Rows) || back.Machine != r.Machine {
		t.Errorf("read back %+v, %v", back, err)
	}
	pictures, err := filepath.Glob(filepath.Join(folder, "*.svg"))
	if err != nil || len(pictures) != 3 { // CPU, bytes, latency of edits
		t.Fatalf("%v %v", pictures, err)
	}
	for _, p := range pictures {
		raw, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		d := xml.NewDecoder(bytes.NewReader(raw))
		for {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", p, err)
			}
		}
		if bytes.Contains(raw, []byte("NaN")) || bytes.Contains(raw, []byte("Inf")) {
			t.Errorf("%s has a point that is nowhere", p)
		}
	}
}

func TestTableAndRatios(t *testing.T) {
	r := run()
	r.Add(Row{Scenario: "edit", Variant: "route", Subject: delta, Source: "synthetic", Hosts: 3407, Figures: map[Metric]float64{CPU: 50}})
	var out bytes.Buffer
	if err := errors.Join(r.Table(&out), r.Ratios(&out)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"derivations=3  bytes=1000  cpu_ms=0.5", "0.01"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
