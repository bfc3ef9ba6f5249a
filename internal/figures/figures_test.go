package figures_test

import (
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
)

func TestDigits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1234: "1µs", 99_499: "99µs", 1_234_567: "1.2ms", 51_234_000: "51ms", 183_400_000: "180ms", 999_000_000: "1s", 12_345_678_901: "12s", 120_000_000_000: "2m0s",
	} {
		if got := figures.Digits(d); got != want {
			t.Errorf("Digits(%d) = %q, want %q", int64(d), got, want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1: "-1", -999: "-999", -1000: "-1,000"} {
		if got := figures.Grouped(n); got != want {
			t.Errorf("Grouped(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 7_234: "7.2 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 1 << 30: "1.1 GB", 2e15: "2.0 PB", 5e18: "5000.0 PB"} {
		if got := figures.Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestShareOfNothing(t *testing.T) {
	if got := figures.Share(0, 0); got != "" {
		t.Errorf("Share(0, 0) = %q", got)
	}
}

func TestCompact(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", time.Millisecond: "1s", 59 * time.Second: "59s", 60 * time.Second: "1m", 61 * time.Second: "1m1s",
		599 * time.Second: "9m59s", 600 * time.Second: "10m", 3599 * time.Second: "60m", time.Hour: "1h", 3660 * time.Second: "1h1m",
		24 * time.Hour: "1d", 50 * time.Hour: "2d2h",
	} {
		if got := figures.Compact(d); got != want {
			t.Errorf("Compact(%v) = %q, want %q", d, got, want)
		}
	}
}

func TestShortAndDecimal(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 9_999: "9999", 10_000: "10.0k", 99_949: "99.9k", 99_950: "100k", 999_499: "999k", 999_500: "1.0M", 23_456_789: "23.5M", 5e12: "5.0T"} {
		if got := figures.Short(n); got != want {
			t.Errorf("Short(%d) = %q, want %q", n, got, want)
		}
	}
	for f, want := range map[float64]string{0: "0", 0.01: "0.01", 0.5: "0.5", 9.94: "9.9", 9.95: "10", 1234.4: "1,234"} {
		if got := figures.Decimal(f); got != want {
			t.Errorf("Decimal(%v) = %q, want %q", f, got, want)
		}
	}
}
