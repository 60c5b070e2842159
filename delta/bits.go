package delta

import "math/bits"

// bitset is a set of small numbers: the ordinals of a type's resources.
type bitset struct{ words []uint64 }

func (b *bitset) has(i uint32) bool {
	w := int(i / 64)
	return w < len(b.words) && b.words[w]&(1<<(i%64)) != 0
}

func (b *bitset) set(i uint32) {
	w := int(i / 64)
	for w >= len(b.words) {
		b.words = append(b.words, 0)
	}
	b.words[w] |= 1 << (i % 64)
}

func (b *bitset) clear(i uint32) {
	if w := int(i / 64); w < len(b.words) {
		b.words[w] &^= 1 << (i % 64)
	}
}

func (b *bitset) count() int {
	n := 0
	for _, w := range b.words {
		n += bits.OnesCount64(w)
	}
	return n
}
