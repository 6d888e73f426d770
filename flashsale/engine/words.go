package engine

import "strconv"

// counted is a number with what it counts, as a person says it: counted(1, "job waits", "jobs wait").
func counted[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(int64(n), 10) + " " + many
}
