package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"testing"
	"time"
)

// TestSaleSectionsRun takes every section of the sale through one short round.
func TestSaleSectionsRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run([]string{"-json", "-rounds", "1", "-duration", "100ms", "-section", "salestock,salesql,saleoffered"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var rep report
	if err := json.Unmarshal(out.Bytes(), &rep); err != nil {
		t.Fatal(err)
	}
	if len(rep.Results) != 3 {
		t.Fatalf("%d results", len(rep.Results))
	}
	for _, res := range rep.Results {
		if res.Skipped != "" && os.Getenv("CI") == "true" {
			t.Errorf("%s: %s", res.Name, res.Skipped)
		}
		for _, row := range res.Rows {
			if len(row.Median) != len(res.Columns) || row.Median[0] <= 0 {
				t.Errorf("%s, %s: %v", res.Name, row.Contender, row.Median)
			}
		}
	}
}

func TestPerJob(t *testing.T) {
	t.Parallel()
	before := saleCPU{all: time.Second, database: 200 * time.Millisecond}
	all, database := saleCPU{all: 3 * time.Second, database: 700 * time.Millisecond}.perJob(before, 10_000)
	if all != 200 || database != 50 {
		t.Errorf("%v and %v µs", all, database)
	}
	if cpu, err := treeCPU(os.Getpid()); err != nil || cpu <= 0 {
		t.Errorf("this process has used %s, %v", cpu, err)
	}
	if cpu, err := treeCPU(0); err != nil || cpu != 0 {
		t.Errorf("no process has used %s, %v", cpu, err)
	}
}
