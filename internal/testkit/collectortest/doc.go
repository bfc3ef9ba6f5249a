// Package collectortest holds no code: its test sends what a run says of itself to an OpenTelemetry collector. It is a
// module of its own because the collector is large.
package collectortest
