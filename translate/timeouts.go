package translate

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// parseTimeout reads a duration: "" and 0 are nil (Envoy's default), "infinity"
// and "infinite" are 0, by which Envoy disables a timeout.
func parseTimeout(s string) (*durationpb.Duration, error) {
	switch s {
	case "":
		return nil, nil
	case "infinity", "infinite":
		return durationpb.New(0), nil
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return nil, fmt.Errorf("unable to parse timeout string %q: %w", s, err)
	case d < 0:
		return nil, fmt.Errorf("unable to parse timeout string %q: it is negative", s)
	case d == 0:
		return nil, nil
	}
	return durationpb.New(d), nil
}
