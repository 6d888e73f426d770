// Package spelling tells how far a misspelt word is from one that is known, for messages that name the nearest.
package spelling

// Distance counts the letters to insert, remove, replace, or swap with the next, to get from one word to another: the
// optimal string alignment distance. It works on bytes, and takes the product of both lengths.
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	before, twoBefore := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		twoBefore, before, row = before, row, twoBefore
		row[0] = i + 1
		for j := range len(b) {
			change := before[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, before[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], twoBefore[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
