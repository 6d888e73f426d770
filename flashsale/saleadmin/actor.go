package saleadmin

import "fmt"

// Role says what somebody may do. A higher one may do all that a lower one may.
type Role int

// The roles. The zero Role may do nothing.
const (
	// Viewer reads.
	Viewer Role = iota + 1
	// Operator opens, pauses, resumes, drains and closes sales, sets rates and revives dead letters.
	Operator
	// Admin creates sales, changes how many units there are, rebuilds, and opens what the check before an opening refuses.
	Admin
)

// roleNames are in the order of the roles.
func roleNames() [3]string { return [...]string{"viewer", "operator", "admin"} }

// String returns the name of the role.
func (r Role) String() string {
	if r < Viewer || r > Admin {
		return "none"
	}
	return roleNames()[r-1]
}

// ParseRole returns the role of a name.
func ParseRole(name string) (Role, error) {
	for i, n := range roleNames() {
		if n == name {
			return Role(i + 1), nil
		}
	}
	return 0, fmt.Errorf("there is no role %.20q; write viewer, operator or admin", name)
}

// Actor is who asks, as the caller has made sure.
type Actor struct {
	// Name is told in operations and in the log, 1 to 255 bytes.
	Name string
	Role Role
}
