package main

import (
	"context"
	"log/slog"
)

// onlyErrors drops warnings: those of a store that is made to fail are the show itself.
type onlyErrors struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (h onlyErrors) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && h.Handler.Enabled(ctx, level)
}

// WithAttrs implements [slog.Handler].
func (h onlyErrors) WithAttrs(attrs []slog.Attr) slog.Handler {
	return onlyErrors{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (h onlyErrors) WithGroup(name string) slog.Handler { return onlyErrors{h.Handler.WithGroup(name)} }
