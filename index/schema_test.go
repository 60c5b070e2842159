package index

import (
	"testing"
)

func TestTrimLog(t *testing.T) {
	entries := func(from, to Revision) []LogEntry {
		var out []LogEntry
		for r := from; r <= to; r++ {
			out = append(out, LogEntry{Revision: r})
		}
		return out
	}
	cases := []struct {
		name    string
		log     []LogEntry
		slowest Revision
		first   Revision // of what is kept
	}{
		{"short logs are kept", entries(1, 60), 60, 1},
		{"nobody has passed", entries(1, 1000), 0, 1},
		{"all have passed", entries(1, 1000), 999, 1000},
		{"half have passed", entries(1, 1000), 500, 501},
		{"too few to be worth a copy", entries(1, 1000), 400, 1},
		{"a reader that stands still doesn't keep it all", entries(1, maxLog+1), 0, maxLog/2 + 2},
	}
	for _, c := range cases {
		got := trimLog(c.log, c.slowest)
		if got[0].Revision != c.first || got[len(got)-1].Revision != c.log[len(c.log)-1].Revision {
			t.Errorf("%s: kept %d to %d, want from %d", c.name, got[0].Revision, got[len(got)-1].Revision, c.first)
		}
	}
}

// The log stays bounded whatever the slowest reader does.
func TestLogIsBounded(t *testing.T) {
	for _, behind := range []Revision{0, 10, 1000, maxLog - 1, maxLog + 1, 1 << 40} {
		var log []LogEntry
		for r := Revision(1); r < 6*maxLog; r++ {
			var slowest Revision
			if r > behind {
				slowest = r - behind
			}
			log = append(trimLog(log, slowest), LogEntry{Revision: r})
			if len(log) > 2*maxLog+1 {
				t.Fatalf("%d entries at revision %d with a reader %d behind", len(log), r, behind)
			}
			if log[len(log)-1].Revision != r {
				t.Fatal("the newest entry is lost")
			}
		}
	}
}
