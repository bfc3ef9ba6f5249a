// Command finder stands in for a provider in docs/resolvers.md: it knows the phone numbers of the
// people of a CSV file, and answers about up to 100 profiles in a request.
package main

import (
	"encoding/csv"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"slices"
	"strings"
)

func main() {
	people, err := os.Open(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	rows, err := csv.NewReader(people).ReadAll()
	if err != nil {
		log.Fatal(err)
	}
	profile, phones := slices.Index(rows[0], "network_url"), slices.Index(rows[0], "phones")
	phoneOf := map[string]string{}
	for _, row := range rows[1:] {
		phoneOf["https://"+row[profile]], _, _ = strings.Cut(row[phones], ";")
	}
	http.HandleFunc("POST /v1/people", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Api-Key") != "a-key" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var asked struct{ Profiles []string }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Profiles) > 100 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		type person struct {
			Phone string `json:"phone"`
		}
		type result struct {
			Profile string  `json:"profile"`
			Person  *person `json:"person"`
		}
		results := []result{}
		for _, profile := range asked.Profiles {
			found := result{Profile: profile}
			if phone := phoneOf[profile]; phone != "" {
				found.Person = &person{phone}
			}
			results = append(results, found)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
	})
	log.Fatal(http.ListenAndServe(os.Args[1], nil))
}
