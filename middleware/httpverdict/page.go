package httpverdict

// Page is what the template of [StyleTemplate] is given. All of it may be shown to the client.
type Page struct {
	Status int
	// Title and Message are in the client's language: "en" or "zh", which Lang says.
	Title, Message, Lang string
	// Code and ID are the verdict's.
	Code, ID string
	// RetryAfter is the number of seconds to wait; 0 if there is none to name.
	RetryAfter int64
}
