// Package schedule says which limits a rule has at a time: its base limits, those of the schedule entry that is on, a step
// of the ramp between the two, or, while the policy is young, a part of them. It is made of pure functions: it reads no
// clock, and the only files it reads are those of the time zone database, when a schedule is parsed.
//
// # Daily times
//
// A daily entry goes by the local clock of its zone, or rather by one that never goes back: where the zone's clock is set
// back, it stands still until that has caught up. So days have 23 or 25 hours where they have in the zone, and
//   - a time that the clock skips is the instant of the jump; an entry that lies wholly in what is skipped, or on a date
//     that does not exist, does not happen that day;
//   - of a time that the clock shows twice the first counts, for a begin and for an end: an entry that ends at 01:30 ends
//     when 01:30 comes for the first time, and one that begins at 01:30 begins there;
//   - entries that meet on the clock meet in time, on every day, and never overlap because the clocks change.
//
// # Steps
//
// Ramps and warm-ups go in steps of one second, counted from the instant at which the entry or the policy began.
// Everything in between is computed in exact fractions and rounded once, see [Plan.At].
package schedule
