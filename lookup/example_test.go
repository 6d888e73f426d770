package lookup_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/headgate-io/headgate/lookup"
)

func ExampleHTTP() {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/users/u-1" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"data": {"tier": "vip"}}`)
	}))
	defer service.Close()

	services := lookup.NewHTTP(lookup.HTTPConfig{})
	defer services.Close()
	for _, user := range []string{"u-1", "u-2"} {
		tier, found, err := services.Get(context.Background(), service.URL+"/users/"+user, "data.tier")
		fmt.Printf("%s: %q %v %v\n", user, tier, found, err)
	}
	// Output:
	// u-1: "vip" true <nil>
	// u-2: "" false <nil>
}
