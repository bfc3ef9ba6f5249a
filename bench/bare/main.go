// Command bare is the upper limit for serve: a net/http server that only reads a
// JSON object and answers with one of the size of an enrichment.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
	"strings"
)

func main() {
	type answer struct {
		Success bool           `json:"success"`
		Message string         `json:"message"`
		Lead    map[string]any `json:"lead"`
		Payload any            `json:"payload"`
	}
	lead := map[string]any{"about": strings.Repeat("x", 1500)}
	handler := func(w http.ResponseWriter, r *http.Request) {
		var question struct {
			NetworkURL string `json:"network_url"`
		}
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			http.Error(w, "not JSON", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(answer{true, "found", lead, question}) // the client is gone
	}
	log.Fatal(http.ListenAndServe(os.Args[1], http.HandlerFunc(handler)))
}
