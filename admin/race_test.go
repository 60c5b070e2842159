//go:build race

package admin_test

// raceEnabled: the race detector makes everything ten times slower.
const raceEnabled = true
