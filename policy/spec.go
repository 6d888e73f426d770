package policy

// mapping describes a mapping of the document. The decoder knows no other fields; the JSON Schema and the reference in
// docs/policy.md are made of the same tables.
type mapping struct {
	name   string
	doc    string
	fields []fieldSpec
}

// fieldSpec describes a field of a mapping.
type fieldSpec struct {
	name string
	form form
	// def is the default as the reference shows it, "" for none to show.
	def      string
	required bool
	doc      string
}

// form is what a value looks like.
type form struct {
	kind formKind
	// words are what a formWord may be.
	words []string
	// least and most bound a formInteger, and the length of a formList or of formEntries, where most is not 0.
	least, most int64
	// of is what a formList has, or what the values of formEntries are.
	of *form
	// mapping is what a formMapping is.
	mapping mapping
	// key names what the author's names of formEntries are, such as "dimension".
	key string
	// single allows a formList of one entry to stand without brackets.
	single bool
}

type formKind uint8

const (
	formText     formKind = iota
	formName              // of a rule, a list or a dimension
	formInteger           // plain digits
	formBoolean           // true, false
	formDuration          // 30s, 1h30m, 7d
	formPercent           // 0% to 100%
	formWord              // one of a few
	formList              // a list
	formMapping           // a mapping with fields of ours
	formEntries           // a mapping with names of the author's
	formLimit             // token_bucket 10/s
	formCEL               // an expression
	formTime              // 2026-11-11T00:00:00+08:00
	formFile              // a path below the policy's folder
)

func listOf(of form, most int64) form { return form{kind: formList, of: &of, most: most} }

func entriesOf(key string, of form, most int64) form {
	return form{kind: formEntries, key: key, of: &of, most: most}
}

func wordForm(words ...string) form { return form{kind: formWord, words: words} }

func mappingForm(m mapping) form { return form{kind: formMapping, mapping: m} }

func (m mapping) names() []string {
	names := make([]string, len(m.fields))
	for i := range m.fields {
		names[i] = m.fields[i].name
	}
	return names
}

func (m mapping) has(name string) bool {
	for i := range m.fields {
		if m.fields[i].name == name {
			return true
		}
	}
	return false
}
