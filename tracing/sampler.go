package tracing

import (
	"fmt"
	"strconv"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Sampler gives the sampler that OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG
// ask for: every trace unless said otherwise.
func Sampler(getenv func(string) string) (sdktrace.Sampler, error) {
	switch name := getenv("OTEL_TRACES_SAMPLER"); name {
	case "", "parentbased_always_on":
		return sdktrace.ParentBased(sdktrace.AlwaysSample()), nil
	case "always_on":
		return sdktrace.AlwaysSample(), nil
	case "always_off":
		return sdktrace.NeverSample(), nil
	case "parentbased_always_off":
		return sdktrace.ParentBased(sdktrace.NeverSample()), nil
	case "traceidratio", "parentbased_traceidratio":
		ratio, err := ratioOf(getenv("OTEL_TRACES_SAMPLER_ARG"))
		if err != nil {
			return nil, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: %w", err)
		}
		if name == "traceidratio" {
			return sdktrace.TraceIDRatioBased(ratio), nil
		}
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio)), nil
	default:
		return nil, fmt.Errorf("OTEL_TRACES_SAMPLER: %q is none of always_on, always_off, traceidratio, or these with parentbased_ before them", name)
	}
}

func ratioOf(text string) (float64, error) {
	if text == "" {
		return 1, nil
	}
	ratio, err := strconv.ParseFloat(text, 64)
	if err != nil || ratio < 0 || ratio > 1 {
		return 0, fmt.Errorf("%q is not a number from 0 to 1", text)
	}
	return ratio, nil
}
