package wire

import (
	"net/http"
	"strconv"
	"strings"
)

// preferences calls each with the elements of a header such as Accept, in lower
// case, and their quality values. An element with an invalid quality value is
// ignored.
// Source: RFC 9110, 12.4.2.
func preferences(values []string, each func(name string, quality float64)) {
	for _, value := range values {
		for element := range strings.SplitSeq(value, ",") {
			name, parameters, _ := strings.Cut(element, ";")
			quality, ok := 1.0, true
			for parameter := range strings.SplitSeq(parameters, ";") {
				key, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
				if strings.EqualFold(strings.TrimSpace(key), "q") {
					var err error
					quality, err = strconv.ParseFloat(strings.TrimSpace(value), 64)
					ok = err == nil && quality >= 0 && quality <= 1
				}
			}
			if ok {
				each(strings.ToLower(strings.TrimSpace(name)), quality)
			}
		}
	}
}

// acceptsProblem reports whether Accept names application/problem+json and
// prefers no other type that we send.
func acceptsProblem(h http.Header) bool {
	problem, json, known := 0.0, 0.0, 0
	preferences(h["Accept"], func(name string, quality float64) {
		exactness := map[string]int{"*/*": 1, "application/*": 2, "application/json": 3}[name]
		switch {
		case name == "application/problem+json":
			problem = quality
		case exactness > known:
			json, known = quality, exactness
		}
	})
	return problem > 0 && problem >= json
}

// acceptsGzip reports whether Accept-Encoding allows gzip.
func acceptsGzip(h http.Header) bool {
	gzip, known := 0.0, 0
	preferences(h["Accept-Encoding"], func(name string, quality float64) {
		if exactness := map[string]int{"*": 1, "gzip": 2}[name]; exactness > known {
			gzip, known = quality, exactness
		}
	})
	return gzip > 0
}
