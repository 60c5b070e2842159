package index

import (
	"fmt"
	"hash/maphash"
	"testing"
)

// Reads whose hashes are the same are told apart.
func TestReadsOfTheSameHash(t *testing.T) {
	table := newReadTable()
	var all []*read
	for i := range 5 {
		all = append(all, table.make(readFact(fmt.Sprint(i))))
	}
	// Put all of them behind one hash.
	h := maphash.Comparable(table.seed, all[2].id)
	for i := range all {
		all[i].next = nil
		if i > 0 {
			all[i-1].next = all[i]
		}
	}
	table.reads = map[uint64]*read{h: all[0]}
	if table.get(all[2].id) != all[2] || table.make(all[2].id) != all[2] {
		t.Fatal("not found behind others")
	}
	table.delete(all[2])
	if table.get(all[2].id) != nil || all[1].next != all[3] {
		t.Fatal("still there")
	}
	x := table.make(all[2].id)
	if x == all[2] || x.next != all[0] {
		t.Fatal("not made anew")
	}
	table.delete(x)
	if table.reads[h] != all[0] {
		t.Fatal("the others are gone")
	}
}
