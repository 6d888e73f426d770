package demo

import (
	"context"
	"log/slog"
)

// OnlyErrors drops what is less than an error: of what a demo does on purpose.
func OnlyErrors(h slog.Handler) slog.Handler { return onlyErrors{h} }

type onlyErrors struct{ slog.Handler }

// Enabled implements [slog.Handler].
func (o onlyErrors) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelError && o.Handler.Enabled(ctx, level)
}

// WithAttrs implements [slog.Handler].
func (o onlyErrors) WithAttrs(attrs []slog.Attr) slog.Handler {
	return onlyErrors{o.Handler.WithAttrs(attrs)}
}

// WithGroup implements [slog.Handler].
func (o onlyErrors) WithGroup(name string) slog.Handler { return onlyErrors{o.Handler.WithGroup(name)} }
