package main

import (
	"encoding/json"
	"testing"
)

func TestSchema(t *testing.T) {
	t.Parallel()
	got := runBinary(t, nil, "schema")
	var schema struct {
		ID   string         `json:"$id"`
		Defs map[string]any `json:"$defs"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &schema); err != nil || got.code != exitGood || got.stderr != "" {
		t.Fatalf("%v\n%s", err, got)
	}
	if schema.ID != "urn:headgate:policy:1" || schema.Defs["rule"] == nil {
		t.Errorf("id %s, definitions %v", schema.ID, schema.Defs)
	}
}
