package redisstore

import (
	"context"

	headgate "github.com/headgate-io/headgate"
)

func (v *view) takeSpread(ctx context.Context, charges []headgate.Charge, groups map[int][]int, d *headgate.Decision) *headgate.Error {
	return nil
}
